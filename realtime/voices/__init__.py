"""Voices that clients upload: their recordings, and what is known of each."""
