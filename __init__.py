"""See and steer: the page that plays replays, and what serves it on this machine."""
