"""Prospector in plain Python: slow, obvious, and what native/prospector/ must equal to the bit."""
