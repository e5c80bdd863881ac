"""The tensors of a checkpoint and where they go."""
