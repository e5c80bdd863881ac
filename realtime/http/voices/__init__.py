"""`/v1/audio/voices`."""
