"""Plain HTTP: health, the list of models, client secrets, the web page."""
