"""The interface of the compiled engine that these sources need: scripts/native_interface.py writes it."""

INTERFACE = "67134ddb9852"
