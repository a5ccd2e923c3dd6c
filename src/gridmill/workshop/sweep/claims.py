"""Who has which trial: locks of the system or of the database, which end with the process that has them.

A worker that is killed leaves its trial without a lock, and the next worker that asks takes it up. No clock and no
heartbeat is involved, so nothing has to be waited for and a slow worker is never mistaken for a dead one.
"""

from __future__ import annotations

import fcntl
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from gridmill.config.files import kind_of, open_plain


class Claims(Protocol):
    """Locks of a sweep: one around the choice of the next trial, and one for each trial."""

    def alone(self) -> Any:
        """A context in which no other worker of the sweep is."""

    def take(self, number: int) -> bool:
        """Take a trial; False if a living worker has it."""

    def give_back(self, number: int) -> None:
        """Leave a trial to others."""

    def close(self) -> None: ...


class FileClaims:
    """By locks on small files, for storages that are files themselves: SQLite and the journal.

    On a directory that hosts share the file system must hold locks for all of them, as NFS does. `acquire` and
    `release` are for Optuna's journal: its own lock is a link, which a killed worker leaves behind.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.held: dict[int, int] = {}
        self.writing = -1
        if (kind := kind_of(folder)) not in ("", "a folder"):
            raise ValueError(f"expected a folder of the sweep itself, got {kind}: `{folder}`")
        folder.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def alone(self) -> Iterator[None]:
        handle = self._locked("choosing")
        try:
            yield
        finally:
            os.close(handle)

    def acquire(self) -> bool:
        self.writing = self._locked("writing")
        return True

    def release(self) -> None:
        os.close(self.writing)

    def take(self, number: int) -> bool:
        if number in self.held:
            return True
        handle = self._open(f"trial-{number:04}")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return False
        except BaseException:
            os.close(handle)
            raise
        self.held[number] = handle
        return True

    def give_back(self, number: int) -> None:
        os.close(self.held.pop(number))

    def close(self) -> None:
        for number in list(self.held):
            self.give_back(number)

    def _locked(self, name: str) -> int:
        handle = self._open(name)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
        except BaseException:
            os.close(handle)
            raise
        return handle

    def _open(self, name: str) -> int:
        return open_plain(self.folder / name, os.O_RDWR | os.O_CREAT)  # for writing: NFS locks nothing else


class DatabaseClaims:
    """By PostgreSQL's advisory locks, which hang on a connection; `name` is the sweep's in the database."""

    def __init__(self, engine: Any, name: str) -> None:
        from sqlalchemy import text

        self._text = text
        crc = zlib.crc32(name.encode())
        self.key = crc - (1 << 32) if crc >= 1 << 31 else crc  # the lock takes a signed number of 32 bits
        self.connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")

    @contextmanager
    def alone(self) -> Iterator[None]:
        self._ask("pg_advisory_lock", -1)
        try:
            yield
        finally:
            self._ask("pg_advisory_unlock", -1)

    def take(self, number: int) -> bool:
        return bool(self._ask("pg_try_advisory_lock", number))

    def give_back(self, number: int) -> None:
        self._ask("pg_advisory_unlock", number)

    def close(self) -> None:
        self.connection.close()
        self.connection.engine.dispose()  # locks hang on the connection, not on its place in a pool

    def _ask(self, function: str, number: int) -> Any:
        asked = self._text(f"SELECT {function}(:sweep, :number)")
        return self.connection.execute(asked, {"sweep": self.key, "number": number}).scalar()
