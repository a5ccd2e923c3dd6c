"""The interface of the compiled engine that these sources need: scripts/native_interface.py writes it."""

INTERFACE = "ec839cbf1ed9"
