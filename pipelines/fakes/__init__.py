"""Scripted stages with exact timing, for demos and tests: no model, no device, no chance."""
