"""One file per model: what hears, judges, writes and speaks."""
