"""Samples in and out of a session: ring, resampling, level and fade. One stream, one object."""
