"""`gridmill` and `python -P -m gridmill`: the command line, and a Ctrl-C before it is there to be told."""

import os
import signal
import sys


def main() -> None:
    """The entry point. Importing takes a second, on a cold disk many: until then there is nothing to save or to say."""
    listens = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # a job in the background ignores it
    if listens:
        signal.signal(signal.SIGINT, lambda *_: os._exit(128 + signal.SIGINT))
    from gridmill.cli import main as command

    try:
        if listens:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        command()
    except KeyboardInterrupt:  # between the commands and the one that was typed
        sys.exit(128 + signal.SIGINT)


if __name__ == "__main__":
    main()
