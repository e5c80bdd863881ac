"""The wire of `/v1/realtime`: text to session events, notices to text, bytes to samples.

`decode.decode` and `encode.Encoder` are the doors; `formats` turns audio bytes into samples and
back. Nothing here knows a conversation's state: what is legal now is judged by `session/`.
"""
