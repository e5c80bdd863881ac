"""`POST /v1/audio/speech` and `/batch`."""
