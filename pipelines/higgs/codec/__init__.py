"""Codes to sound and back: exact, streamed, on any device."""
