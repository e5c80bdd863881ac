"""Plain HTTP: health, the list of models, the web page."""
