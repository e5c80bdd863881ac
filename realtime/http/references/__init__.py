"""Recordings that a request points to: what may be read, and how."""
