"""The page that plays replays again and lets people take over: its files, its engine, what serves and exports it."""
