"""What the project claims, as programs that print it. Run one with `python -m benchmarks.NAME`."""
