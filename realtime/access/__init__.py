"""Who may come in: bearer keys and web origins."""
