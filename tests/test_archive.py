"""A run as JSON text and back: exact, from any process, and damaged text is one error."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from array import array
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.interactiveshell import InteractiveShell
from shells import Notebook, loaded, started

import nbseed
from nbseed import archive
from nbseed.archive import doubles, dump, from_doubles, load
from nbseed.errors import FileError
from nbseed.recording import Observed
from nbseed.run import Run
from nbseed.why import explain

BUSY = """\
%%rngcheckpoint busy --track score
import os, random, numpy as np, torch
rng = np.random.default_rng()
torch.manual_seed(5)
table = {"a": [1, 2.5, None], "b": rng.random(3), "c": {"x", "y"}}
def step(n):
    return random.random() * n
for i in range(3):
    score = step(i)
os.listdir(".")
table["a"]"""


@pytest.fixture(scope="module")
def shell() -> Iterator[InteractiveShell]:
    with started() as shell:
        yield shell


@pytest.fixture
def notebook(shell: InteractiveShell) -> Iterator[Notebook]:
    with loaded(shell) as notebook:
        notebook.ok("%seed 3")
        yield notebook


def fields(run: Run) -> dict[str, Any]:
    return {name: getattr(run, name) for name in archive._FIELDS}


def empty() -> Run:
    return Run(1, "x", None, {}, "", "", "ok", observed=Observed())


def test_a_real_run_comes_back_field_by_field(notebook: Notebook) -> None:
    notebook.ok(BUSY)
    run = nbseed.runs("busy")[0]
    assert run.observed is not None
    assert {call.kind for call in run.observed.calls} == {"entropy", "seed"}
    assert run.observed.left.found["table"].parts
    again = load(dump(run), run.values, checkpoint=7, turn=9)
    assert fields(again) == fields(run)
    assert (again.checkpoint, again.turn) == (7, 9)
    assert again.losses["score"].tolist() == run.losses["score"].tolist()


def test_two_runs_from_text_are_explained_as_the_runs_themselves(notebook: Notebook) -> None:
    for _ in range(2):
        notebook.ok(BUSY)
    first, second = nbseed.runs("busy")
    before, now = (load(dump(run), run.values, run.checkpoint) for run in (first, second))
    wanted, found = explain(first, second), explain(before, now)
    assert wanted.causes
    assert (found.causes, found.draws, found.ruled_out, found.restart) == (
        wanted.causes, wanted.draws, wanted.ruled_out, wanted.restart,
    )  # fmt: skip


def test_every_field_of_a_run_is_kept_or_known_to_be_left_out() -> None:
    left_out = {"values", "checkpoint", "turn"}
    assert set(archive._FIELDS) | left_out == set(Run.__dataclass_fields__)


def test_what_lives_on_as_another_class_of_text_is_text() -> None:
    class Version(str):
        pass

    run = Run(1, "x", 2**32 - 1, {}, "", "", "ok", switches={"torch": Version("2"), "on": True})
    assert load(dump(run)).switches == {"torch": "2", "on": True}


TEXT = st.text(st.characters(codec=None), max_size=12)  # lone surrogates too
PLAIN = st.none() | st.booleans() | st.integers() | TEXT | st.floats(allow_nan=False)


@given(
    name=TEXT,
    code=TEXT,
    notes=st.lists(TEXT).map(tuple),
    around=st.dictionaries(TEXT, TEXT),
    switches=st.dictionaries(TEXT, PLAIN),
    seed=st.none() | st.integers(0, 2**32 - 1),
)
def test_any_text_and_value_comes_back(
    name: str, code: str, notes: tuple[str, ...], around: dict[str, str],
    switches: dict[str, Any], seed: int | None,
) -> None:  # fmt: skip
    observed = Observed(source=code, around=around, switches=switches, alive=notes)
    run = Run(3, name, seed, {}, "a", "b", "error", notes=notes, code=code, observed=observed)
    assert fields(load(dump(run))) == fields(run)


# -- values ----------------------------------------------------------------------------------------

BITS = st.lists(st.integers(0, 2**64 - 1), max_size=20)  # every NaN and both zeros


@given(BITS)
def test_values_keep_every_bit(bits: list[int]) -> None:
    data = struct.pack(f"<{len(bits)}Q", *bits)
    assert doubles(from_doubles(data)) == data
    assert doubles(np.frombuffer(data, "<f8").astype(np.float64)) == data


def test_values_are_little_endian_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    assert doubles(array("d", [1.0])) == struct.pack("<d", 1.0)
    monkeypatch.setattr(sys, "byteorder", "big")
    assert doubles(array("d", [1.0])) == struct.pack(">d", 1.0)  # what swapping does here
    assert from_doubles(struct.pack(">d", 1.0)).tolist() == [1.0]


def test_values_that_are_cut_off_are_refused() -> None:
    with pytest.raises(FileError) as caught:
        from_doubles(bytes(12))
    assert str(caught.value) == "recorded values are damaged: 12 bytes are no whole doubles"


# -- damage ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "a run's record is damaged: Expecting value: line 1 column 1 (char 0)"),
        ("[]", "a run's record is damaged: it is no object"),
        ("{}", "a run's record is of version None; this nbseed reads 1"),
        ('{"version": 2}', "a run's record is of version 2; this nbseed reads 1"),
        ("[" * 200_000, None),
    ],
)
def test_what_is_no_record_is_one_error(text: str, said: str | None) -> None:
    with pytest.raises(FileError) as caught:
        load(text)
    assert said is None or str(caught.value) == said
    assert len(str(caught.value)) < 200


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


@pytest.mark.parametrize("wrong", [12.5, [[]], {"x": {}}], ids=["number", "list", "object"])
def test_a_wrong_value_anywhere_is_one_error(wrong: Any, notebook: Notebook) -> None:
    notebook.ok(BUSY)
    whole = dump(nbseed.runs("busy")[0])
    refused = 0
    for path in places(json.loads(whole)):
        damaged = json.loads(whole)
        part = damaged
        for key in path[:-1]:
            part = part[key]
        if isinstance(part[path[-1]], dict) and not part[path[-1]] and isinstance(wrong, dict):
            continue
        part[path[-1]] = wrong
        try:
            load(json.dumps(damaged))
        except FileError as error:
            refused += str(error).startswith("a run's record is ")
        else:
            assert "switches" in path  # whose values may be any number
            assert wrong == 12.5
    assert refused > 50


def test_fields_that_are_missing_or_new_are_named() -> None:
    record = json.loads(dump(empty()))
    del record["seed"]
    with pytest.raises(FileError) as caught:
        load(json.dumps({**record, "mood": 1}))
    assert str(caught.value) == "a run's record is damaged: other fields (mood, seed)"


def test_reading_a_run_imports_no_numpy() -> None:
    code = (
        "import sys; from nbseed.archive import dump, load; from nbseed.run import Run\n"
        "load(dump(Run(1, 'x', None, {}, '', '', 'ok')))\n"
        "print('numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
