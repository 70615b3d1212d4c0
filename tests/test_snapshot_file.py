"""Snapshot files: exact for every generator; damaged and foreign ones are one line."""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from IPython.core.interactiveshell import InteractiveShell
from shells import Notebook, loaded, started
from standin import Devices

import nbseed
from nbseed import Snapshot, snapshot_file
from nbseed.errors import CoverageError, FileError
from nbseed.snapshot_file import Stored, dump, load

STORED = Stored(
    {"python": bytes(range(256)), "torch.cpu": b"", "user:rng": b"\0\xff"},
    3,
    {"python": "3.11.7", "torch": "2.13.0"},
    {"torch.cuda:0": "Stand-in"},
    ("user:x is not covered",),
)


@pytest.fixture(scope="module")
def shell() -> Iterator[InteractiveShell]:
    with started() as shell:
        yield shell


@pytest.fixture
def notebook(
    shell: InteractiveShell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Notebook]:
    monkeypatch.chdir(tmp_path)
    with loaded(shell) as notebook:
        notebook.ok("%seed 3\nimport random, numpy as np, torch")
        yield notebook


def with_header(change: Any, data: bytes = dump(STORED)) -> bytes:
    """The bytes of a file with another header; `change` gets its JSON and nbseed's entry."""
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    metadata = json.loads(header["__metadata__"]["nbseed"])
    header = change(header, metadata) or header
    if "nbseed" in header.get("__metadata__", {}):
        header["__metadata__"]["nbseed"] = json.dumps(metadata)
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data[8 + size :]


# -- round trips -----------------------------------------------------------------------------------

NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20).filter(
    lambda name: name != "__metadata__"
)


@settings(deadline=None)
@given(
    states=st.dictionaries(NAMES, st.binary(max_size=6000), max_size=8),
    seed=st.none() | st.integers(0, 2**32 - 1),
    texts=st.dictionaries(st.text(max_size=9), st.text(max_size=9), max_size=3),
)
def test_what_is_written_is_read(
    states: dict[str, bytes], seed: int | None, texts: dict[str, str]
) -> None:
    stored = Stored(states, seed, texts, texts, tuple(texts))
    again = load(dump(stored))
    assert again == stored
    assert list(again.states) == list(states)  # in their order


def test_equal_snapshots_are_equal_bytes() -> None:
    assert dump(STORED) == dump(Stored(dict(STORED.states), 3, dict(STORED.versions),
                                       dict(STORED.models), STORED.notes))  # fmt: skip


def test_any_reader_of_safetensors_finds_the_states_by_name(tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    nbseed.snapshot().save(tmp_path / "x.safetensors")
    found = load_file(tmp_path / "x.safetensors")
    assert {name: array.tobytes() for name, array in found.items()} == nbseed.snapshot().states
    assert {array.dtype for array in found.values()} == {np.dtype(np.uint8)}
    with safetensors.safe_open(tmp_path / "x.safetensors", "np") as file:
        assert set(file.metadata()) == {"nbseed"}


def test_every_kind_of_generator_goes_on_where_it_was(tmp_path: Path) -> None:
    kept = {
        "mt": np.random.RandomState(1), "pcg": np.random.default_rng(2),
        "sfc": np.random.Generator(np.random.SFC64(3)),
        "philox": np.random.Generator(np.random.Philox(4)), "own": random.Random(5),
        "t": torch.Generator().manual_seed(6),
    }  # fmt: skip
    for name, generator in kept.items():
        nbseed.register(name, generator)

    def draw() -> list[Any]:
        return [
            random.gauss(0, 1), np.random.standard_normal(3).tolist(), torch.randn(3).tolist(),
            kept["mt"].standard_normal(3).tolist(), kept["own"].gauss(0, 1),
            *(kept[n].normal(size=3).tolist() for n in ("pcg", "sfc", "philox")),
            torch.randn(3, generator=kept["t"]).tolist(),
        ]  # fmt: skip

    try:
        draw()  # half of a Gaussian is kept by now
        before = nbseed.snapshot()
        before.save(tmp_path / "x")
        first = draw()
        loaded_again = Snapshot.load(tmp_path / "x")
        assert loaded_again == before
        assert loaded_again.fingerprint == before.fingerprint
        nbseed.restore(loaded_again)
        assert draw() == first
    finally:
        for name in kept:
            nbseed.unregister(name)


def test_a_snapshot_travels_to_another_process(tmp_path: Path) -> None:
    nbseed.snapshot().save(tmp_path / "x")
    code = (
        "import sys, random, numpy, torch, nbseed\n"
        "nbseed.restore(nbseed.Snapshot.load(sys.argv[1]))\n"
        "print(nbseed.snapshot().fingerprint, random.random(), numpy.random.rand())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "x")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    mark = nbseed.snapshot().fingerprint
    assert done.stdout.split() == [mark, repr(random.random()), str(np.random.rand())]


def test_neither_saving_nor_loading_imports_numpy_or_torch(tmp_path: Path) -> None:
    code = (
        "import sys, nbseed\n"
        "nbseed.snapshot().save(sys.argv[1]); nbseed.restore(nbseed.Snapshot.load(sys.argv[1]))\n"
        "print('numpy' in sys.modules, 'torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "x")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "False False\n"


# -- damaged and foreign files ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is no snapshot of nbseed"),
        (b"short", "is no snapshot of nbseed"),
        (b"PK\3\4" + bytes(500), "is no snapshot of nbseed"),
        (b"\xff" * 100, "is no snapshot of nbseed"),
        (b'\5\0\0\0\0\0\0\0{"a":', "is damaged: its header is no JSON (Expecting value"),
        (b"\2\0\0\0\0\0\0\0{}", "is no snapshot of nbseed: another program's safetensors file"),
        (
            b'\x1b\0\0\0\0\0\0\0{"__metadata__":{"x":"1"}} ',
            "is no snapshot of nbseed: another program's safetensors file",
        ),
        (dump(STORED)[:-1], "is damaged: Error while deserializing: incomplete metadata"),
        (dump(STORED) + b"\0", "is damaged: Error while deserializing: incomplete metadata"),
    ],
)
def test_what_is_no_snapshot_is_one_line(data: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(data)
    with pytest.raises(FileError) as caught:
        Snapshot.load(path)
    assert str(caught.value).startswith(f"{path} {said}")
    assert "\n" not in str(caught.value)


def newer(header: Any, metadata: Any) -> None:
    metadata["format"] = 2


def unnumbered(header: Any, metadata: Any) -> None:
    metadata["format"] = True


def other_dtype(header: Any, metadata: Any) -> None:
    header["user:rng"]["dtype"], header["user:rng"]["shape"] = "F16", [1]


def two_rows(header: Any, metadata: Any) -> None:
    header["user:rng"]["shape"] = [1, 2]


def huge(header: Any, metadata: Any) -> None:
    header["user:rng"]["shape"] = [2**63, 2]


def swapped(header: Any, metadata: Any) -> None:
    a, b = header["python"], header["user:rng"]
    header["python"], header["user:rng"] = b, a


def unnamed(header: Any, metadata: Any) -> None:
    del metadata["fingerprints"]["python"]


def wrong_whole(header: Any, metadata: Any) -> None:
    metadata["fingerprint"] = "0" * 32


def seed_of_text(header: Any, metadata: Any) -> None:
    metadata["seed"] = "3"


def number_as_model(header: Any, metadata: Any) -> None:
    metadata["models"] = {"a": [1]}


def a_list(header: Any, metadata: Any) -> Any:
    return {**header, "__metadata__": {"nbseed": "[1]"}} and metadata.clear()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (newer, "has format 2; this nbseed reads 1: a newer one is needed"),
        (unnumbered, "is damaged: its header does not say which format it has"),
        (a_list, "is damaged: its header does not say which format it has"),
        (other_dtype, "is damaged: user:rng is F16 of shape (1,), not a row of bytes"),
        (two_rows, "is damaged: user:rng is U8 of shape (1, 2), not a row of bytes"),
        (huge, "is damaged: Error while deserializing: overflow computing buffer size from shape"),
        (swapped, "is damaged: python has not the fingerprint that stands in the header"),
        (unnamed, "is damaged: its header and its states name others (python)"),
        (wrong_whole, "is damaged: its states have not the fingerprint of the whole"),
        (seed_of_text, "is damaged: the header's seed is missing or of another kind"),
        (number_as_model, "is damaged: the header holds something else than text"),
    ],
)
def test_a_header_that_does_not_fit_is_named(change: Any, said: str) -> None:
    with pytest.raises(FileError) as caught:
        load(with_header(change))
    assert str(caught.value).startswith(said)


def test_a_name_that_stands_twice_is_refused() -> None:
    data = dump(STORED)
    size = int.from_bytes(data[:8], "little")
    text = data[8 : 8 + size].rstrip()
    entry = text[text.index(b'"torch.cpu"') : text.index(b"}", text.index(b'"torch.cpu"')) + 1]
    twice = text[:-1] + b"," + entry + b"}"
    with pytest.raises(FileError) as caught:
        load(len(twice).to_bytes(8, "little") + twice + data[8 + size :])
    assert str(caught.value) == "is damaged: its header is no JSON (a name stands twice)"


@pytest.mark.parametrize("deep", ["[", '{"a":'])
def test_deep_json_is_refused(deep: str) -> None:
    def nest(header: Any, metadata: Any) -> None:
        header["__metadata__"]["more"] = "x"

    inner = dump(STORED)
    size = int.from_bytes(inner[:8], "little")
    header = json.loads(inner[8 : 8 + size])
    header["__metadata__"]["nbseed"] = deep * 100_000
    text = json.dumps(header).encode()
    for data in (
        len(text).to_bytes(8, "little") + text + inner[8 + size :],
        (8 + len(deep) * 100_000).to_bytes(8, "little")
        + b'{"a": '
        + deep.encode() * 100_000
        + b"  ",
    ):
        with pytest.raises(FileError, match="is damaged"):
            load(data)


def test_random_damage_is_always_the_projects_own_error_and_moves_nothing(tmp_path: Path) -> None:
    nbseed.snapshot().save(tmp_path / "good")
    good, chance = (tmp_path / "good").read_bytes(), random.Random(7)
    before, refused = nbseed.snapshot(), 0
    began, peak = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    size = 8 + int.from_bytes(good[:8], "little")
    for turn in range(3000):
        data = bytearray(good)
        for _ in range(chance.choice((1, 1, 2, 8))):
            kind = chance.randrange(5)
            at = chance.randrange(len(data) if kind else min(size, len(data)))
            if kind == 1:
                data = data[:at] or bytearray(b"x")
            elif kind == 2:
                data[at:at] = chance.randbytes(chance.randrange(1, 20))
            elif kind == 3:
                other = chance.randrange(len(data))
                data[at : at + 4], data[other : other + 4] = (
                    data[other : other + 4],
                    data[at : at + 4],
                )
            else:  # a bit, mostly of the header
                data[at] ^= 1 << chance.randrange(8)
        try:
            found = load(bytes(data))
        except FileError as error:
            refused += len(str(error)) < 250
        else:  # only what is said about the states may have changed, not they
            assert found.states == before.states, turn
            refused += 1
    assert refused == 3000
    assert nbseed.snapshot() == before
    assert time.perf_counter() - began < 120  # a hang, not a measure
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 200_000  # KiB


# -- writing ---------------------------------------------------------------------------------------


def test_a_file_that_is_no_snapshot_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text("x = 1")
    with pytest.raises(FileError) as caught:
        nbseed.snapshot().save(path)
    assert str(caught.value) == f"{path} is there and is no snapshot; nothing was written"
    assert path.read_text() == "x = 1"


def test_an_empty_file_and_an_older_snapshot_are_replaced(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.touch()
    nbseed.snapshot().save(path)
    random.random()
    nbseed.snapshot().save(str(path))
    assert Snapshot.load(path) == nbseed.snapshot()


@pytest.mark.parametrize("name", ["__metadata__", "\ud800"])
def test_a_name_that_no_file_takes_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(FileError) as caught:
        Snapshot({name: b"x"}).save(tmp_path / "x")
    assert str(caught.value) == f"a generator called {name!r} cannot be written to a file"
    assert not (tmp_path / "x").exists()


# -- what others have saved ------------------------------------------------------------------------


def test_other_versions_and_devices_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Devices("cuda", 1)
    monkeypatch.setattr(torch, "cuda", made)
    monkeypatch.setattr(made, "get_device_name", lambda index: "Model B", raising=False)
    made.init()
    versions = {"python": "3.9.1", "torch": "2.0.0", "jax": "0.1"}
    models = {"torch.cuda:0": "Model A", "torch.cuda:1": "Model A"}
    snapshot_file.write(
        tmp_path / "x", Stored({"python": b"1"}, 3, versions, models, ("left out",))
    )
    assert Snapshot.load(tmp_path / "x").notes == (
        "left out",
        f"saved with python 3.9.1, here {sys.version.split()[0]}",
        f"saved with torch 2.0.0, here {torch.__version__}",
        "torch.cuda:0 was a Model A, here it is a Model B: its draws may differ",
    )


def test_devices_that_are_not_here_are_refused_or_left_out(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Devices("cuda", 3)
    monkeypatch.setattr(torch, "cuda", made)
    made.init()
    notebook.ok("%seed 5\n%rng save three.safetensors")
    wanted = nbseed.snapshot()
    fewer = Devices("cuda", 2)
    monkeypatch.setattr(torch, "cuda", fewer)
    fewer.init()
    notebook.ok("%seed 4")
    before = nbseed.snapshot()
    said = str(notebook.run("%rng load three.safetensors").error)
    assert said == (
        "three.safetensors was not loaded: torch.cuda:2 (no such device); --partial sets the others"
    )
    assert nbseed.snapshot() == before
    with pytest.raises(CoverageError, match=r"no longer there: torch\.cuda:2"):
        nbseed.restore(Snapshot.load("three.safetensors"))
    lines = notebook.ok("%rng load three.safetensors --partial").lines
    assert lines[0].startswith(f"loaded three.safetensors, {wanted.fingerprint[:8]}: python, ")
    assert lines[0].endswith("torch.cuda:0, torch.cuda:1; saved under seed 5")
    assert lines[1:] == ["  note: not set: torch.cuda:2 (no such device)"]
    assert nbseed.snapshot().states.items() <= wanted.states.items()


def test_a_state_of_an_older_torch_is_named(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Devices("cuda", 1)
    monkeypatch.setattr(torch, "cuda", made)
    made.init()
    states = {**nbseed.snapshot().states, "torch.cuda:0": bytes(816)}
    Snapshot(states).save("old")
    before = nbseed.snapshot()
    assert str(notebook.run("%rng load old").error) == (
        "old was not loaded: torch.cuda:0: 816 bytes, as torch had it before 2.1, expected 16; "
        "--partial sets the others"
    )
    assert nbseed.snapshot() == before


def test_what_is_not_there_is_told_by_its_kind(notebook: Notebook) -> None:
    Snapshot({"jax": b"1", "sim:0": b"2", "user:gone": b"3", "user:lost.rng": b"4"}).save("x")
    reasons = "jax (not registered), sim:0 (not registered)"
    said = str(notebook.run("%rng load x --partial").error)
    assert said.startswith("x was not loaded: ")
    assert "gone, lost.rng (no such variable)" in said
    assert "sim:0 (not registered)" in said or reasons in said
    assert "--partial" not in said  # nothing would be set


# -- the magics ------------------------------------------------------------------------------------


def test_save_and_load_say_what_they_did(notebook: Notebook) -> None:
    notebook.ok("rng = np.random.default_rng(1)")
    taken = nbseed.snapshot()
    names = ", ".join(taken.states)
    assert notebook.ok("%rng save a.safetensors").lines == [
        f"saved a.safetensors, {taken.fingerprint[:8]}: {names}"
    ]
    first = notebook.ok("random.random(), np.random.rand(), torch.rand(1).item(), rng.random()")
    assert notebook.ok('%rng load "a.safetensors"').lines == [
        f"loaded a.safetensors, {taken.fingerprint[:8]}: {names}; saved under seed 3"
    ]
    again = notebook.ok("random.random(), np.random.rand(), torch.rand(1).item(), rng.random()")
    assert again.value == first.value


def test_what_the_file_lacks_is_left_alone_and_said(notebook: Notebook) -> None:
    notebook.ok("%rng save a\nrng = np.random.default_rng(1)")
    state = notebook.ns["rng"].bit_generator.state
    assert notebook.ok("%rng load a").lines[1:] == ["  note: not in the file: user:rng"]
    assert notebook.ns["rng"].bit_generator.state == state


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("save", "%rng save takes FILE, got 0"),
        ("save a b", "%rng save takes FILE, got 2"),
        ("load", "%rng load takes FILE [--partial], got 0"),
        ("load a b", "%rng load takes FILE [--partial], got a b"),
        ("load --partial", "%rng load takes FILE [--partial], got --partial"),
        ("load nothing", "nothing cannot be read: No such file or directory"),
        ("save no/where", "no/where cannot be written: No such file or directory"),
    ],
)
def test_wrong_words_are_one_line(line: str, said: str, notebook: Notebook) -> None:
    before = nbseed.snapshot()
    assert str(notebook.run(f"%rng {line}").error) == said
    assert nbseed.snapshot() == before
    assert os.listdir() == []


def test_a_path_of_the_home_folder_is_understood(
    notebook: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    notebook.ok("%rng save ~/mine.safetensors")
    assert (tmp_path / "mine.safetensors").exists()
    assert notebook.ok("%rng load ~/mine.safetensors").lines[0].startswith("loaded ~/mine.")
