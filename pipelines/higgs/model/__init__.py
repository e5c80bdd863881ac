"""The decoder of codes in plain torch: layers, head and sampler."""
