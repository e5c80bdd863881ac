"""Higgs Audio v2: a Llama whose rows of codes have norms and feed-forwards of their own."""
