"""The interface of the compiled engine that these sources need: scripts/native_interface.py writes it."""

INTERFACE = "fbbdc85ae936"
