"""`WS /v1/audio/speech/stream`."""
