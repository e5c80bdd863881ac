"""Models and the cascade: what hears, thinks and speaks. Never imports `realtime`."""
