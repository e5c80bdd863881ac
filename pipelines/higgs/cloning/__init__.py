"""A voice to speak in, from a recording or its codes."""
