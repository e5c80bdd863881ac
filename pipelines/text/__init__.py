"""From written text to spoken text: chunks to speak early, and forms that can be spoken."""
