"""What is written to the model: tokens, control tags, prompts."""
