"""Who may come in, and how much of it: keys, client secrets, web origins, quotas and rates."""
