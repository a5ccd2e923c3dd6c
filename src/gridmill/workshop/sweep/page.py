from pathlib import Path

from gridmill.workshop.sweep.record import State


def write(folder: Path, state: State) -> None:
    pass
