"""`gridmill` and `python -P -m gridmill`: the command line, and what comes before it: a Ctrl-C of which nobody could be
told yet, and streams that whoever started us has closed.
"""

import os
import signal
import sys


def main() -> None:
    """The entry point. Importing takes a second, on a cold disk many: until then there is nothing to save or to say."""
    listens = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # a job in the background ignores it
    if listens:
        signal.signal(signal.SIGINT, lambda *_: os._exit(128 + signal.SIGINT))
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # `>&-`; else the next file that is opened would be printed into
            stream = open(os.devnull, mode)  # noqa: SIM115
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)
    from gridmill.cli import main as command

    try:
        if listens:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        command()
    except KeyboardInterrupt:  # between the commands and the one that was typed
        sys.exit(128 + signal.SIGINT)


if __name__ == "__main__":
    main()
