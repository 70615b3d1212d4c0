"""Checkpoints and runs in one SQLite file: they outlive the kernel, and several kernels share it.

Each call opens the file, does one transaction and closes it, so that nothing is held while a cell
runs, a kernel that is killed leaves no lock, and a folder can be moved between two cells. SQLite's
rollback journal is used, not its write-ahead log, whose shared memory network folders do not have.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from . import archive, snapshot_file
from .errors import FileError
from .files import reason
from .fingerprint import of_states
from .run import Run
from .snapshot_file import Stored

PATH = Path(".nbseed", "store.sqlite")
"""Beside the notebook: a kernel works in its notebook's folder."""
MOST = 500 * 2**20
"""Bytes of the file; beyond that the oldest runs go."""
_WAIT = 2.0  # seconds for a store that another kernel writes to
_OURS = 0x6E627364  # PRAGMA application_id: "nbsd"

# Each takes the schema from one version to the next; a released one is never changed.
_MIGRATIONS = (
    """
    CREATE TABLE checkpoints (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        cell TEXT NOT NULL,
        name TEXT NOT NULL,
        seed INTEGER,
        each_cell INTEGER NOT NULL,
        pin_entropy INTEGER NOT NULL,
        fingerprint TEXT NOT NULL,
        snapshot BLOB NOT NULL,
        created REAL NOT NULL
    );
    CREATE INDEX checkpoints_of_cells ON checkpoints (cell, id);
    CREATE TABLE runs (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        checkpoint INTEGER NOT NULL REFERENCES checkpoints (id) ON DELETE CASCADE,
        record TEXT NOT NULL,
        created REAL NOT NULL
    );
    CREATE INDEX runs_of_checkpoints ON runs (checkpoint, id);
    CREATE TABLE recorded (
        run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        place INTEGER NOT NULL,
        name TEXT NOT NULL,
        doubles BLOB NOT NULL,
        PRIMARY KEY (run, place)
    );
    """,
)


class Key(NamedTuple):
    """What a checkpoint belongs to: a cell, and the seed in force when it was taken.

    Attributes
    ----------
    cell
        The cell's identity.
    seed
        0 to 2**32 - 1, or None.
    each_cell, pin_entropy
        The options of that seed.
    """

    cell: str
    seed: int | None = None
    each_cell: bool = False
    pin_entropy: bool = False


@dataclass(frozen=True)
class Kept:
    """A checkpoint in a store.

    Attributes
    ----------
    row
        Its number in the store.
    key, name
        What it belongs to, and what the cell is called.
    snapshot
        The states that it holds.
    created
        Seconds since 1970.
    """

    row: int
    key: Key
    name: str
    snapshot: Stored = field(repr=False)
    created: float = 0.0


@dataclass(frozen=True)
class Listed:
    """A line of what a store holds: a checkpoint without its states, and how many runs it has."""

    row: int
    key: Key
    name: str
    fingerprint: str
    runs: int


class Store:
    """A store's file; nothing is opened or made before it is asked for.

    Every method raises FileError, worded for the user, if the file is locked, read-only, full,
    damaged, of a later version, or no store; what was in it is still there.
    """

    def __init__(self, path: Path = PATH, most: int = MOST) -> None:
        self.path, self.most = path, most
        self._file = path.absolute()  # the cell may change the working folder

    @property
    def exists(self) -> bool:
        """Whether there is a file."""
        return self._file.is_file()

    # -- writing -----------------------------------------------------------------------------------

    def add(self, key: Key, name: str, snapshot: Stored, run: Run, row: int = 0) -> tuple[int, int]:
        """Keep a run, and its checkpoint if it is not there; all of it or nothing.

        Parameters
        ----------
        key, name, snapshot
            The checkpoint.
        run
            The run. The oldest others go where room is short.
        row
            The checkpoint's number here, if it has been kept before.

        Returns
        -------
        tuple of int
            The numbers of the checkpoint and of the run.
        """
        record, data = archive.dump(run), snapshot_file.dump(snapshot)
        mark = of_states(snapshot.states)
        recorded = [(_text(name), archive.doubles(values)) for name, values in run.values.items()]
        with self._transaction(write=True) as database:
            there = "SELECT 1 FROM checkpoints WHERE id = ?"
            if not (row and database.execute(there, (row,)).fetchone()):
                row = _inserted(
                    database,
                    "INSERT INTO checkpoints"
                    " (cell, seed, each_cell, pin_entropy, name, fingerprint, snapshot, created)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    (_text(key.cell), *key[1:], _text(name), mark, data, time.time()),
                )
            number = _inserted(
                database,
                "INSERT INTO runs (checkpoint, record, created) VALUES (?, ?, ?)",
                (row, record, time.time()),
            )
            database.executemany(
                "INSERT INTO recorded (run, place, name, doubles) VALUES (?, ?, ?, ?)",
                [(number, place, *values) for place, values in enumerate(recorded)],
            )
            self._make_room(database, number)
        return row, number

    def drop(self, name: str) -> int:
        """Forget a cell's checkpoints and runs; returns how many checkpoints there were."""
        if not self.exists:
            return 0
        with self._transaction(write=True) as database:
            done = database.execute("DELETE FROM checkpoints WHERE name = ?", (_text(name),))
            return done.rowcount

    def _make_room(self, database: sqlite3.Connection, newest: int) -> None:
        """Drop the oldest runs until the file is as small as it must be; the newest stays.

        The first run of a checkpoint is what others are compared with: it goes after them.
        """

        def used() -> int:
            pages, free, size = (
                int(database.execute(f"PRAGMA {what}").fetchone()[0])
                for what in ("page_count", "freelist_count", "page_size")
            )
            return (pages - free) * size

        while used() > self.most:
            oldest = database.execute(
                "SELECT id FROM runs WHERE id != ? ORDER BY"
                " id IN (SELECT min(id) FROM runs GROUP BY checkpoint), id LIMIT 1",
                (newest,),
            ).fetchone()
            if oldest is None:
                return
            database.execute("DELETE FROM runs WHERE id = ?", oldest)

    # -- reading -----------------------------------------------------------------------------------

    def checkpoints(self, name: str) -> list[Kept]:
        """The newest checkpoint of each key of a cell's name, oldest first."""
        if not self.exists:
            return []
        with self._transaction() as database:
            rows = database.execute(
                "SELECT id, cell, seed, each_cell, pin_entropy, snapshot, created FROM checkpoints"
                " WHERE id IN (SELECT max(id) FROM checkpoints WHERE name = ?"
                "  GROUP BY cell, seed, each_cell, pin_entropy) ORDER BY id",
                (_text(name),),
            ).fetchall()
        found = []
        for row, cell, seed, each_cell, pin_entropy, data, created in rows:
            key = Key(cell, seed, bool(each_cell), bool(pin_entropy))
            try:
                found.append(Kept(row, key, name, snapshot_file.load(data), created))
            except FileError as error:
                raise FileError(f"{self.path}: the checkpoint {name} {error}") from None
        return found

    def names(self) -> list[str]:
        """The names of the cells that have checkpoints here, oldest first."""
        return list(dict.fromkeys(listed.name for listed in self.listed()))

    def runs(self, checkpoint: int, after: int = 0, most: int = 1000) -> list[tuple[int, Run]]:
        """Runs of a checkpoint with their numbers, oldest first.

        Parameters
        ----------
        after
            Only those that came after this one.
        most
            The first of all, and the newest of the others up to this many.
        """
        if not self.exists:
            return []
        with self._transaction() as database:
            rows = database.execute(
                "SELECT id, record FROM runs WHERE checkpoint = :of AND id > :after AND ("
                " id = (SELECT min(id) FROM runs WHERE checkpoint = :of) OR id IN ("
                "  SELECT id FROM runs WHERE checkpoint = :of ORDER BY id DESC LIMIT :most))"
                " ORDER BY id",
                {"of": checkpoint, "after": after, "most": max(1, most - 1)},
            ).fetchall()
            recorded = "SELECT name, doubles FROM recorded WHERE run = ? ORDER BY place"
            values = {row: database.execute(recorded, (row,)).fetchall() for row, _ in rows}
        try:
            return [
                (row, archive.load(record, {n: archive.from_doubles(d) for n, d in values[row]}))
                for row, record in rows
            ]
        except FileError as error:
            raise FileError(f"{self.path}: {error}") from None

    def listed(self) -> list[Listed]:
        """All checkpoints, oldest first, without their states."""
        if not self.exists:
            return []
        with self._transaction() as database:
            rows = database.execute(
                "SELECT id, cell, seed, each_cell, pin_entropy, name, fingerprint,"
                " (SELECT count(*) FROM runs WHERE checkpoint = checkpoints.id)"
                " FROM checkpoints ORDER BY id"
            ).fetchall()
        return [
            Listed(row, Key(cell, seed, bool(each_cell), bool(pin_entropy)), *rest)
            for row, cell, seed, each_cell, pin_entropy, *rest in rows
        ]

    # -- the file ----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _transaction(self, write: bool = False) -> Iterator[sqlite3.Connection]:
        """One transaction; FileError if the file does not take it, and nothing has changed."""
        try:
            if write:
                self._file.parent.mkdir(parents=True, exist_ok=True)
            database = sqlite3.connect(self._file, timeout=_WAIT, isolation_level=None)
        except (OSError, sqlite3.Error) as error:
            raise FileError(f"{self.path} cannot be opened: {reason(error)}") from None
        try:
            database.execute("PRAGMA foreign_keys = ON")
            self._prepare(database)
            database.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            yield database
            database.execute("COMMIT")
        except (sqlite3.Error, OverflowError, UnicodeError) as error:
            raise FileError(self._worded(error)) from None
        finally:
            database.close()  # what was not committed is undone

    def _prepare(self, database: sqlite3.Connection) -> None:
        """Bring the schema up to date; a file that is no store is refused."""
        version = _pragma(database, "user_version")
        if version == len(_MIGRATIONS) and _pragma(database, "application_id") == _OURS:
            return
        database.execute("BEGIN IMMEDIATE")  # another kernel may be at it
        version = _pragma(database, "user_version")
        ours = _pragma(database, "application_id") == _OURS
        empty = not database.execute("SELECT 1 FROM sqlite_master").fetchone()
        if not ours and not (empty and version == 0):
            raise FileError(f"{self.path} is another program's database")
        if version > len(_MIGRATIONS):
            raise FileError(
                f"{self.path} is of version {version}, this nbseed reads {len(_MIGRATIONS)}: "
                "a newer one is needed"
            )
        for number, script in enumerate(_MIGRATIONS[version:], version + 1):
            for statement in script.split(";"):
                database.execute(statement)
            database.execute(f"PRAGMA user_version = {number}")
        database.execute(f"PRAGMA application_id = {_OURS}")
        database.execute("COMMIT")

    def _worded(self, error: Exception) -> str:
        said = str(error)
        if "locked" in said:
            return f"{self.path} is locked: another kernel writes to it"
        if "readonly" in said or "unable to open" in said:
            return f"{self.path} cannot be written: {said}"
        if "full" in said:
            return f"{self.path} cannot be written: the disk is full"
        if "not a database" in said or "malformed" in said:
            return f"{self.path} is damaged ({said}); move it away, and a new one is made"
        return f"{self.path}: {said}"


def _inserted(database: sqlite3.Connection, statement: str, values: tuple[object, ...]) -> int:
    return int(database.execute(statement, values).lastrowid or 0)


def _pragma(database: sqlite3.Connection, name: str) -> int:
    return int(database.execute(f"PRAGMA {name}").fetchone()[0])


def _text(name: str) -> str:
    """A name as SQLite takes it: it refuses lone surrogates."""
    return name.encode("utf-8", "backslashreplace").decode()
