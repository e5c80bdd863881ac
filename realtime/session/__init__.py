"""The conversation core: a pure function of (state, event, now). No I/O, no clock, no samples.

`machine.py` is the door: `Machine.step(event, now_ms) -> list[Effect]`. `table.py` holds every
transition as data. The package imports the standard library alone.
"""
