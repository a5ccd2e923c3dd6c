"""A further worker of a sweep, started by the command: `python -m gridmill.workshop.sweep.beside PID SETTINGS`.

It leaves in order, its trial saved, when the command that started it has gone, however that ended.
"""

from __future__ import annotations

import os
import sys

from gridmill.config.text import harmless
from gridmill.runs.stop import Stop
from gridmill.workshop.sweep import command, storage
from gridmill.workshop.sweep.study import Study


def main(parent: int, text: str) -> int:
    settings = command.Settings.read(text)
    plan = command.planned(settings)
    with storage.faults_named(settings.storage, plan.folder):
        opened = storage.open_storage(settings.storage, plan.folder, plan.sweep.name)
        try:
            study = Study(plan.sweep, plan.space, opened, settings.storage, plan.base.seed)
            signals: list[int] = []
            with Stop(signals.append):
                return command.work(settings, plan, study, lambda: os.getppid() != parent, signals)
        finally:
            opened.close()


if __name__ == "__main__":
    try:
        sys.exit(main(int(sys.argv[1]), sys.argv[2]))
    except (ValueError, OSError, RuntimeError) as error:  # one line, as from the command itself
        print(harmless(f"gridmill: another worker ended: {' '.join(str(error).split())}"), file=sys.stderr)
        sys.exit(2)
