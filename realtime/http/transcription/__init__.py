"""`POST /v1/audio/transcriptions` and `/translations`."""
