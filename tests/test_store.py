"""The store on disk: whole after any kill, shared by kernels, one line for each way to fail."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import subprocess
import sys
import textwrap
import threading
from array import array
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nbseed import store as module
from nbseed.errors import FileError
from nbseed.run import Run
from nbseed.snapshot_file import Stored
from nbseed.store import Key, Store

SNAPSHOT = Stored({"python": b"abc", "user:rng": bytes(50)}, 3)
KEY = Key("name:train", 3)
POSIX = pytest.mark.skipif(os.name != "posix", reason="signals and modes of POSIX")


def run(number: int = 1, values: int = 3, **fields: Any) -> Run:
    losses = array("d", [number + step / 7 for step in range(values)])
    return Run(number, "train", 3, {"loss": losses}, "a" * 32, "b" * 32, "ok", **fields)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / ".nbseed" / "store.sqlite")


def numbers(store: Store, row: int = 1) -> list[int]:
    return [run.number for _, run in store.runs(row)]


# -- what is kept ----------------------------------------------------------------------------------


def test_nothing_is_made_before_something_is_kept(store: Store, tmp_path: Path) -> None:
    assert store.checkpoints("train") == []
    assert store.runs(1) == []
    assert store.listed() == []
    assert store.names() == []
    assert store.drop("train") == 0
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_and_its_runs_come_back(store: Store) -> None:
    row, first = store.add(KEY, "train", SNAPSHOT, run(1, notes=("ä",)))
    again, second = store.add(KEY, "train", SNAPSHOT, run(2, 0), row)
    assert (row, again) == (1, 1)
    assert second > first
    (kept,) = Store(store.path).checkpoints("train")
    assert (kept.row, kept.key, kept.name, kept.snapshot) == (1, KEY, "train", SNAPSHOT)
    found = Store(store.path).runs(1)
    assert [number for number, _ in found] == [first, second]
    assert [r.number for _, r in found] == [1, 2]
    assert found[0][1].values["loss"].tolist() == run(1).values["loss"].tolist()
    assert found[0][1].notes == ("ä",)
    assert found[1][1].values["loss"].tolist() == []


def test_each_key_has_its_own_and_the_newest_counts(store: Store) -> None:
    keys = [KEY, Key("name:train"), Key("name:train", 4), Key("name:train", 3, True)]
    for number, key in enumerate(keys):
        store.add(key, "train", replace(SNAPSHOT, seed=number), run())
    store.add(KEY, "train", replace(SNAPSHOT, seed=99), run())  # taken anew
    store.add(Key("name:other"), "other", SNAPSHOT, run())
    found = {kept.key: kept.snapshot.seed for kept in store.checkpoints("train")}
    assert found == {KEY: 99, keys[1]: 1, keys[2]: 2, keys[3]: 3}
    assert [kept.row for kept in store.checkpoints("train")] == [2, 3, 4, 5]
    assert store.names() == ["train", "other"]
    assert [(listed.row, listed.runs) for listed in store.listed()] == [(n, 1) for n in range(1, 7)]


def test_newer_runs_are_read_alone(store: Store) -> None:
    row, _ = store.add(KEY, "train", SNAPSHOT, run(1))
    _, second = store.add(KEY, "train", SNAPSHOT, run(2), row)
    store.add(KEY, "train", SNAPSHOT, run(3), row)
    assert [r.number for _, r in store.runs(row, after=second)] == [3]


def test_of_many_runs_the_first_and_the_newest_are_read(store: Store) -> None:
    row = 0
    for number in range(1, 12):
        row, _ = store.add(KEY, "train", SNAPSHOT, run(number), row)
    assert [r.number for _, r in store.runs(row, most=4)] == [1, 9, 10, 11]


def test_drop_takes_a_name_with_all_its_runs(store: Store) -> None:
    row, _ = store.add(KEY, "train", SNAPSHOT, run())
    store.add(Key("name:train", 4), "train", SNAPSHOT, run())
    store.add(Key("name:other"), "other", SNAPSHOT, run())
    assert store.drop("train") == 2
    assert store.drop("train") == 0
    assert store.names() == ["other"]
    assert store.runs(row) == []
    with sqlite3.connect(store.path) as database:
        counts = [database.execute(f"SELECT count(*) FROM {t}").fetchone()[0]
                  for t in ("checkpoints", "runs", "recorded")]  # fmt: skip
    database.close()
    assert counts == [1, 1, 1]


def test_a_checkpoint_that_another_kernel_has_dropped_is_kept_again(store: Store) -> None:
    row, _ = store.add(KEY, "train", SNAPSHOT, run(1))
    store.drop("train")
    again, _ = store.add(KEY, "train", SNAPSHOT, run(2), row)
    assert again != row
    assert numbers(store, again) == [2]


def test_names_of_any_text_are_kept(store: Store) -> None:
    for name in ("<b>'; DROP TABLE runs; --", "名前", "\ud800", "a\0b"):
        store.add(Key(f"name:{name}"), name, SNAPSHOT, run())
        assert len(store.checkpoints(name)) == 1


def test_values_keep_every_bit(store: Store) -> None:
    odd = array("d", [float("nan"), -0.0, float("inf"), 5e-324])
    row, _ = store.add(KEY, "train", SNAPSHOT, replace(run(), values={"b": odd, "a": odd[:0]}))
    ((_, found),) = store.runs(row)
    assert list(found.values) == ["b", "a"]  # in their order
    assert found.values["b"].tobytes() == odd.tobytes()


def test_the_oldest_runs_go_where_room_is_short_and_the_first_stays(tmp_path: Path) -> None:
    store = Store(tmp_path / "store.sqlite", most=1_000_000)
    row = 0
    for number in range(1, 41):
        row, _ = store.add(KEY, "train", SNAPSHOT, run(number, 10_000), row)  # 80 kB each
    kept = numbers(store, row)
    assert kept[0] == 1
    assert kept[1:] == list(range(42 - len(kept), 41))
    assert 8 <= len(kept) <= 12
    assert store.path.stat().st_size < 1_300_000


def test_one_run_that_is_too_large_is_kept_all_the_same(tmp_path: Path) -> None:
    store = Store(tmp_path / "store.sqlite", most=100_000)
    row, _ = store.add(KEY, "train", SNAPSHOT, run(1))
    store.add(KEY, "train", SNAPSHOT, run(2, 100_000), row)
    assert numbers(store, row) == [2]


def test_the_cell_may_change_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = Store()
    (tmp_path / "other").mkdir()
    os.chdir("other")
    store.add(KEY, "train", SNAPSHOT, run())
    assert (tmp_path / ".nbseed" / "store.sqlite").is_file()
    assert store.names() == ["train"]


# -- versions --------------------------------------------------------------------------------------


def pragmas(path: Path) -> tuple[int, int]:
    database = sqlite3.connect(path)
    try:
        return tuple(  # type: ignore[return-value]
            database.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("user_version", "application_id")
        )
    finally:
        database.close()


def test_an_older_store_is_brought_up_to_date(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    row, _ = store.add(KEY, "train", SNAPSHOT, run())
    assert pragmas(store.path) == (1, 0x6E627364)
    more = "ALTER TABLE runs ADD COLUMN mood TEXT; CREATE TABLE extra (x)"
    monkeypatch.setattr(module, "_MIGRATIONS", (*module._MIGRATIONS, more))
    assert numbers(store, row) == [1]
    assert pragmas(store.path)[0] == 2
    database = sqlite3.connect(store.path)
    assert database.execute("SELECT mood FROM runs").fetchall() == [(None,)]
    database.close()


def test_a_migration_that_fails_leaves_the_store_as_it_was(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    row, _ = store.add(KEY, "train", SNAPSHOT, run())
    before = store.path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(
            module, "_MIGRATIONS", (*module._MIGRATIONS, "CREATE TABLE extra (x); NONSENSE")
        )
        with pytest.raises(FileError, match="syntax error"):
            store.names()
    assert store.path.read_bytes() == before
    assert numbers(store, row) == [1]


def test_a_newer_store_is_refused_and_untouched(store: Store) -> None:
    store.add(KEY, "train", SNAPSHOT, run())
    database = sqlite3.connect(store.path)
    database.execute("PRAGMA user_version = 7")
    database.close()
    before = store.path.read_bytes()
    for call in calls(store):
        with pytest.raises(FileError) as caught:
            call()
        assert str(caught.value) == (
            f"{store.path} is of version 7, this nbseed reads 1: a newer one is needed"
        )
    assert store.path.read_bytes() == before


# -- ways to fail ----------------------------------------------------------------------------------


def calls(store: Store) -> list[Any]:
    return [
        lambda: store.add(KEY, "train", SNAPSHOT, run(), 1),
        lambda: store.checkpoints("train"),
        lambda: store.runs(1),
        lambda: store.listed(),
        lambda: store.drop("train"),
    ]


def test_another_programs_database_is_refused(store: Store) -> None:
    store.path.parent.mkdir()
    database = sqlite3.connect(store.path)
    database.execute("CREATE TABLE theirs (x)")
    database.commit()
    database.close()
    before = store.path.read_bytes()
    for call in calls(store):
        with pytest.raises(FileError) as caught:
            call()
        assert str(caught.value) == f"{store.path} is another program's database"
    assert store.path.read_bytes() == before


@pytest.mark.parametrize(
    "content", [b"no database at all" * 100, b"SQLite format 3\0" + b"\xff" * 5000]
)
def test_what_is_no_database_is_one_line(content: bytes, store: Store) -> None:
    store.path.parent.mkdir()
    store.path.write_bytes(content)
    for call in calls(store):
        with pytest.raises(FileError) as caught:
            call()
        assert str(caught.value).startswith(f"{store.path} is damaged (")
        assert str(caught.value).endswith("); move it away, and a new one is made")
    assert store.path.read_bytes() == content


def test_a_locked_store_is_one_line_after_a_while(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.add(KEY, "train", SNAPSHOT, run())
    monkeypatch.setattr(module, "_WAIT", 0.05)
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    try:
        for call in calls(store):
            with pytest.raises(FileError) as caught:
                call()
            assert str(caught.value) == f"{store.path} is locked: another kernel writes to it"
    finally:
        other.close()
    assert numbers(store) == [1]


def test_a_short_lock_is_waited_for(store: Store) -> None:
    row, _ = store.add(KEY, "train", SNAPSHOT, run(1))
    other = sqlite3.connect(store.path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN EXCLUSIVE")
    timer = threading.Timer(0.2, other.close)
    timer.start()
    store.add(KEY, "train", SNAPSHOT, run(2), row)
    timer.join()
    assert numbers(store, row) == [1, 2]


def test_a_full_disk_is_one_line_and_loses_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    row, _ = store.add(KEY, "train", SNAPSHOT, run(1))
    connect = sqlite3.connect

    def small(*args: Any, **options: Any) -> sqlite3.Connection:
        database = connect(*args, **options)
        database.execute("PRAGMA max_page_count = 20")
        return database

    monkeypatch.setattr(sqlite3, "connect", small)
    with pytest.raises(FileError) as caught:
        store.add(KEY, "train", SNAPSHOT, run(2, 100_000), row)
    assert str(caught.value) == f"{store.path} cannot be written: the disk is full"
    assert numbers(store, row) == [1]


def test_a_file_in_the_place_of_the_folder_is_one_line(tmp_path: Path) -> None:
    (tmp_path / ".nbseed").write_text("mine")
    store = Store(tmp_path / ".nbseed" / "store.sqlite")
    with pytest.raises(FileError) as caught:
        store.add(KEY, "train", SNAPSHOT, run())
    assert str(caught.value) == f"{store.path} cannot be opened: File exists"
    assert (tmp_path / ".nbseed").read_text() == "mine"
    assert store.names() == []


def test_a_folder_in_the_place_of_the_file_is_one_line(store: Store) -> None:
    store.path.mkdir(parents=True)
    with pytest.raises(FileError) as caught:
        store.add(KEY, "train", SNAPSHOT, run())
    assert str(caught.value) == f"{store.path} cannot be opened: unable to open database file"


def test_a_read_only_store_can_be_read_and_not_written(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    row, _ = store.add(KEY, "train", SNAPSHOT, run(1))
    connect = sqlite3.connect

    def read_only(path: Path, **options: Any) -> sqlite3.Connection:
        return connect(f"file:{path}?mode=ro", uri=True, **options)

    monkeypatch.setattr(sqlite3, "connect", read_only)
    with pytest.raises(FileError) as caught:
        store.add(KEY, "train", SNAPSHOT, run(2), row)
    assert str(caught.value) == (
        f"{store.path} cannot be written: attempt to write a readonly database"
    )
    assert numbers(store, row) == [1]


def test_a_record_that_was_tampered_with_is_one_line(store: Store) -> None:
    row, number = store.add(KEY, "train", SNAPSHOT, run(1))
    for table, column, value, said in (
        (
            "recorded",
            "doubles",
            b"123",
            "recorded values are damaged: 3 bytes are no whole doubles",
        ),
        ("recorded", "doubles", 12, "recorded values are damaged: no bytes, but int"),
        ("runs", "record", "{}", "a run's record is of version None; this nbseed reads 1"),
        ("runs", "record", b"\xff", "a run's record is damaged: no text, but bytes"),
    ):
        database = sqlite3.connect(store.path)
        before = database.execute(f"SELECT {column} FROM {table}").fetchone()
        database.execute(f"UPDATE {table} SET {column} = ?", (value,))
        database.commit()
        with pytest.raises(FileError) as caught:
            store.runs(row)
        assert str(caught.value) == f"{store.path}: {said}"
        database.execute(f"UPDATE {table} SET {column} = ?", before)
        database.commit()
        database.close()
    assert numbers(store, row) == [1]
    assert number == 1


def test_random_damage_is_always_the_projects_own_error(tmp_path: Path) -> None:
    store = Store(tmp_path / "good.sqlite")
    row = 0
    for number in range(1, 8):
        row, _ = store.add(KEY, "train", SNAPSHOT, run(number, 200), row)
    good, chance, refused = store.path.read_bytes(), random.Random(5), 0
    damaged = Store(tmp_path / "damaged.sqlite")
    for turn in range(400):
        data = bytearray(good)
        for _ in range(chance.choice((1, 3, 30))):
            at = chance.randrange(len(data)) if turn % 2 else chance.randrange(8192)
            data[at] = chance.randrange(256)
        if turn % 7 == 0:
            data = data[: chance.randrange(len(data))]
        damaged.path.write_bytes(data)
        for call in calls(damaged)[1:] + calls(damaged)[:1]:
            try:
                call()
            except FileError as error:
                refused += "\n" not in str(error)
        for journal in tmp_path.glob("damaged.sqlite-*"):
            journal.unlink()
    assert refused > 200


# -- kernels together, and their deaths ------------------------------------------------------------

WRITER = textwrap.dedent("""
    import json, os, random, signal, sys, time
    from array import array
    from pathlib import Path
    from nbseed.run import Run
    from nbseed.snapshot_file import Stored
    from nbseed.store import Key, Store

    store, snapshot = Store(Path(sys.argv[1])), Stored({"python": bytes(3000)}, 3)

    def add(row, child, number):
        values = array("d", [child * 1000 + number + step / 1000 for step in range(2000)])
        run = Run(number, "train", 3, {"loss": values}, "", "", "ok", notes=(str(child),))
        return store.add(Key("name:train", 3), "train", snapshot, run, row)[0]
""")


def written(store: Store) -> dict[str, list[int]]:
    """The runs in a store by the child that wrote them; each is whole."""
    database = sqlite3.connect(store.path)
    assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert database.execute("PRAGMA foreign_key_check").fetchall() == []
    database.close()
    found: dict[str, list[int]] = {}
    for listed in store.listed():
        for _, run in store.runs(listed.row, most=100_000):
            child = int(run.notes[0])
            wanted = [child * 1000 + run.number + step / 1000 for step in range(2000)]
            assert run.values["loss"].tolist() == wanted
            found.setdefault(run.notes[0], []).append(run.number)
    return found


@POSIX
def test_a_kernel_that_is_killed_at_any_instant_loses_at_most_the_run_in_progress(
    tmp_path: Path,
) -> None:
    code = WRITER + textwrap.dedent("""
        chance, told = random.Random(11), {}
        for child in range(200):
            receive, send = os.pipe()
            pid = os.fork()
            if pid == 0:
                row, number = 0, 0
                while True:
                    number += 1
                    row = add(row, child, number)
                    os.write(send, b"1")
            os.close(send)
            time.sleep(chance.random() * 0.06)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            with os.fdopen(receive, "rb") as pipe:
                told[child] = len(pipe.read())
        print(json.dumps(told))
    """)
    store = Store(tmp_path / "store.sqlite")
    done = subprocess.run(
        [sys.executable, "-c", code, str(store.path)], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    told = json.loads(done.stdout)
    assert len(told) == 200
    assert sum(told.values()) > 200
    found = written(store)
    for child, count in told.items():
        # What was said to be kept is there; one more may have been kept before it could be said.
        assert found.get(child, []) in (list(range(1, count + 1)), list(range(1, count + 2)))


def test_several_kernels_write_to_one_store_at_once(tmp_path: Path) -> None:
    code = WRITER + textwrap.dedent("""
        row = 0
        for number in range(1, 26):
            row = add(row, int(sys.argv[2]), number)
    """)
    store = Store(tmp_path / "store.sqlite")
    children = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(store.path), str(child)], stderr=subprocess.PIPE
        )
        for child in range(4)
    ]
    assert [child.communicate()[1] for child in children] == [b""] * 4
    assert written(store) == {str(child): list(range(1, 26)) for child in range(4)}
