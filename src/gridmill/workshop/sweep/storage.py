"""Where a sweep's trials are kept: SQLite in its folder, a journal file on a shared directory, or PostgreSQL.

What Optuna keeps there is JSON and numbers; nothing is unpickled (its Redis and gRPC storages would, and are not
taken). Only a storage that the person named, or the SQLite file of the sweep's own folder, is ever opened.
"""

from __future__ import annotations

import logging
import sqlite3
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from gridmill.config.files import read_plain, refuse_shared
from gridmill.config.install import pip_install
from gridmill.config.text import clipped
from gridmill.workshop.sweep.claims import Claims, DatabaseClaims, FileClaims

SQLITE, JOURNAL, POSTGRESQL = "study.sqlite3", ".journal", "postgresql://"
BESIDE = ("-journal", "-wal", "-shm")  # the files that SQLite looks for beside a database, and believes
MAGIC = bytes.fromhex("d9d505f920a163d7")  # behind the name of a super-journal, at the end of a journal
PATIENCE = 60  # seconds that a worker waits while others write to the SQLite file


@dataclass(frozen=True)
class Storage:
    """Optuna's storage, and who has which of its trials."""

    optuna: Any
    claims: Claims

    def close(self) -> None:
        self.claims.close()
        self.optuna.remove_session()


def optuna_module() -> ModuleType:
    """Optuna without its chatter; one line if it is missing."""
    try:
        import optuna
    except ImportError:
        raise ValueError(f"a sweep needs Optuna: {pip_install('gridmill[tune]')}") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    logging.getLogger("alembic").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
    return optuna


def check(text: str) -> None:
    """ValueError for a storage that is none of ours."""
    if not text or text.endswith(JOURNAL) or text.startswith(POSTGRESQL):
        return
    scheme, found, rest = text.partition("://")
    shown = f"{scheme}://..." if found and "@" in rest else clipped(text)  # no password in a message
    raise ValueError(
        f"--storage takes FILE{JOURNAL} in a shared directory or {POSTGRESQL}USER@HOST/DATABASE, got `{shown}`; "
        "without it, trials are stored in an SQLite file in the sweep's folder"
    )


def without_password(text: str) -> str:
    """The storage as it may be shown and kept in a file."""
    if not text.startswith(POSTGRESQL):
        return text
    who, at, where = text.removeprefix(POSTGRESQL).rpartition("@")
    return f"{POSTGRESQL}{who.partition(':')[0]}{at}{where}"


@contextmanager
def faults_named(text: str, folder: Path) -> Iterator[None]:
    """Whatever the database of a sweep complains of in here is one line that names it: a full disk, a damaged file."""
    optuna = optuna_module()
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (SQLAlchemyError, optuna.exceptions.StorageInternalError) as error:
        fault = error.__cause__ if isinstance(error.__cause__, SQLAlchemyError) else error
        said = " ".join(str(getattr(fault, "orig", None) or fault).split())
        named = without_password(text) or folder / SQLITE
        raise ValueError(f"a sweep cannot be stored in `{named}`: {clipped(said, 300)}") from None


def open_storage(text: str, folder: Path, name: str) -> Storage:
    """The storage of a sweep in `folder`, which is called `name` where several share one database."""
    check(text)
    with faults_named(text, folder):
        return _postgresql(text, name) if text.startswith(POSTGRESQL) else _of_a_file(text, folder)


def _of_a_file(text: str, folder: Path) -> Storage:
    from optuna.storages import JournalStorage, RDBStorage
    from optuna.storages.journal import JournalFileBackend
    from sqlalchemy import URL

    file = Path(text).absolute() if text else folder.absolute() / SQLITE
    _refuse_foreign(file)
    file.parent.mkdir(parents=True, exist_ok=True)
    claims = FileClaims(file.with_name(f"{file.name}.claims"))
    lock: Any = claims  # has what Optuna's class for it asks for
    with claims.alone():  # several workers may be the first
        if text:
            return Storage(JournalStorage(JournalFileBackend(str(file), lock)), claims)
        url = URL.create("sqlite", database=str(file)).render_as_string()  # a plain ? would end the path
        return Storage(RDBStorage(url, {"creator": lambda: _connected(file)}), claims)


def _connected(file: Path) -> sqlite3.Connection:
    """The database; ValueError if it computes something by itself, such as a view that never ends."""
    connection = sqlite3.connect(file, PATIENCE, check_same_thread=False)
    found = connection.execute("SELECT type, name FROM sqlite_master WHERE type NOT IN ('table', 'index')").fetchone()
    if found is not None:
        connection.close()
        raise ValueError(f"expected only tables of trials, got the {found[0]} `{clipped(found[1])}`: `{file}`")
    return connection


def _refuse_foreign(file: Path) -> None:
    """ValueError if opening trials would touch anything else: the folder may come from anybody, and SQLite follows
    links, waits for pipes and deletes the file that a journal calls its super-journal. No journal of ours has one: only
    a transaction over several databases does.
    """
    for path in (file, *(file.with_name(f"{file.name}{end}") for end in BESIDE)):
        refuse_shared(path, "sweep")
    journal = file.with_name(f"{file.name}{BESIDE[0]}")
    with suppress(FileNotFoundError):  # a living worker's is there for a moment
        if read_plain(journal, len(MAGIC), tail=True) == MAGIC:
            raise ValueError(
                f"expected a journal of the sweep's own database, got one that names another file, which SQLite would "
                f"delete: `{journal}`; remove it if you trust `{file.name}` without it"
            )


def _postgresql(text: str, name: str) -> Storage:
    try:
        import psycopg  # noqa: F401
    except ImportError:
        raise ValueError(f"PostgreSQL needs psycopg: {pip_install('gridmill[postgresql]')}") from None
    import sqlalchemy
    from optuna.storages import RDBStorage

    url = f"postgresql+psycopg://{text.removeprefix(POSTGRESQL)}"
    engine = sqlalchemy.create_engine(url)
    claims = DatabaseClaims(engine, name)
    with claims.alone():
        return Storage(RDBStorage(url, {"pool_pre_ping": True}), claims)
