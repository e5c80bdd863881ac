"""Samples in and out of a session: ring, resampling, level, edges. One stream, one object."""
