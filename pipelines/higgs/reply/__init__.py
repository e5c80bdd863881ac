"""One reply between its text and its sound: all that is not tensors."""
