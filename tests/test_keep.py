"""``%%rngcheckpoint --keep``: a cell goes on from what an earlier kernel has kept."""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import kernel as driver
import pandas as pd
import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell
from shells import Notebook, loaded, started

import nbseed
from nbseed import store
from nbseed.checkpoints import CHECKPOINTS
from nbseed.panel.widget import Panel
from nbseed.store import Store

TRAIN = """\
%%rngcheckpoint train --keep
x = torch.randn(5, requires_grad=True)
for i in range(4):
    (x ** 2 + random.random()).sum().backward()"""
FILE = os.path.join(".nbseed", "store.sqlite")


@pytest.fixture(scope="module")
def shell() -> Iterator[InteractiveShell]:
    with started() as shell:
        yield shell


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(store, "_WAIT", 0.05)
    return tmp_path


@contextmanager
def kernel(shell: InteractiveShell, seed: int | None = 3) -> Iterator[Notebook]:
    """The notebook in a new session: of an earlier one it knows nothing but the disk."""
    with loaded(shell) as notebook:
        notebook.ok("import random, numpy as np, torch, nbseed")
        if seed is not None:
            notebook.ok(f"%seed {seed}")
        yield notebook


def losses(name: str = "train") -> list[list[float]]:
    return [run.losses["loss"].tolist() for run in nbseed.runs(name)]


# -- a new session ---------------------------------------------------------------------------------


def test_without_the_option_nothing_is_written(shell: InteractiveShell, folder: Path) -> None:
    with kernel(shell) as notebook:
        notebook.ok(TRAIN.replace(" --keep", ""))
        notebook.ok("%rng list")
        nbseed.runs()
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("seed", [3, None], ids=["seeded", "unseeded"])
def test_the_cell_rewinds_to_what_an_earlier_session_has_kept(
    shell: InteractiveShell, seed: int | None
) -> None:
    with kernel(shell, seed) as notebook:
        notebook.ok("random.seed(99); torch.manual_seed(99)")
        lines = notebook.ok(TRAIN).lines
        assert lines[1:] == [f"  note: kept in {FILE}"]
        assert notebook.ok(TRAIN).lines[1:] == []
        kept = losses()
    with kernel(shell, seed) as notebook:
        random.seed(5)
        torch.manual_seed(5)
        lines = notebook.ok(TRAIN).lines
        assert lines[0].startswith("train, run 3: rewound to ")
        assert "same draws; losses bit-identical (4 steps)" in lines[0]
        assert lines[1] == f"  note: the checkpoint and 2 runs come from {FILE}"
        assert losses() == [*kept, kept[0]]
        assert notebook.ok(TRAIN).lines[1:] == []
    with kernel(shell, seed):
        assert losses() == [kept[0]] * 4
        assert [run.number for run in nbseed.runs("train")] == [1, 2, 3, 4]


def test_each_seed_has_its_own(shell: InteractiveShell) -> None:
    with kernel(shell) as notebook:
        notebook.ok(TRAIN)
        notebook.ok("%seed 4")
        notebook.ok(TRAIN)
        kept = losses()
        assert kept[0] != kept[1]
    with kernel(shell, 4) as notebook:
        assert notebook.ok(TRAIN).lines[0].startswith("train, run 3: rewound to ")
        assert losses()[2] == kept[1]
        notebook.ok("%seed 5")
        assert "run 4: checkpoint " in notebook.ok(TRAIN).lines[0]
        notebook.ok("%seed 3")
        notebook.ok(TRAIN)
        assert losses()[4] == kept[0]


def test_a_run_of_yesterday_is_what_todays_is_compared_with(shell: InteractiveShell) -> None:
    with kernel(shell) as notebook:
        notebook.ok(TRAIN)
    with kernel(shell) as notebook:
        lines = notebook.ok(TRAIN.replace("x ** 2", "2 * x ** 2")).lines
        assert "losses part at step 0" in lines[0]
        assert "why: " in lines[0]
        said = repr(notebook.ok("%rng why train").value)
        assert "run 2 beside run 1" in said
        assert "2 * x ** 2" in said


def test_losses_overlays_todays_runs_on_yesterdays(shell: InteractiveShell) -> None:
    with kernel(shell) as notebook:
        notebook.ok(TRAIN)
        notebook.ok(TRAIN)
    with kernel(shell) as notebook:
        assert notebook.ok("%losses train").out.startswith("train: 2 runs, bit-identical")
        notebook.ok(TRAIN)
        assert notebook.ok("%losses").out.startswith("train: 3 runs, bit-identical")


def test_what_was_rewound_elsewhere_is_said(shell: InteractiveShell) -> None:
    with kernel(shell) as notebook:
        notebook.ok("random.random()")
        notebook.ok(TRAIN)
    with kernel(shell) as notebook:
        lines = notebook.ok(TRAIN).lines
        assert "  note: the cells before this one now leave another state" in "\n".join(lines)
    with kernel(shell) as notebook:
        notebook.ok("random.random()")
        assert len(notebook.ok(TRAIN).lines) == 2


def test_reset_takes_the_snapshot_anew_and_the_old_runs_stay(shell: InteractiveShell) -> None:
    with kernel(shell) as notebook:
        notebook.ok(TRAIN)
        kept = losses()
    with kernel(shell) as notebook:
        notebook.ok("random.random()")
        lines = notebook.ok(TRAIN.replace("--keep", "--keep --reset")).lines
        assert "run 2: checkpoint " in lines[0]
        new = losses()
        assert new[0] == kept[0]
        assert new[1] != kept[0]
    with kernel(shell) as notebook:
        notebook.ok(TRAIN)
        assert losses()[-1] == new[1]  # the newest checkpoint counts


def test_objects_of_the_user_are_rewound_if_they_are_there(shell: InteractiveShell) -> None:
    cell = "%%rngcheckpoint own --keep\nvalue = rng.random()"
    with kernel(shell) as notebook:
        notebook.ok("rng = np.random.default_rng(1)")
        notebook.ok(cell)
        value = notebook.ns["value"]
    with kernel(shell) as notebook:
        notebook.ok("rng = np.random.default_rng(2)")
        notebook.ok(cell)
        assert notebook.ns["value"] == value


def test_variables_that_are_carried_are_not_on_disk_and_that_is_said(
    shell: InteractiveShell,
) -> None:
    cell = "%%rngcheckpoint count --keep --with total\ntotal += 1"
    with kernel(shell) as notebook:
        notebook.ok("total = 10")
        assert f"  note: kept in {FILE}, without total" in notebook.ok(cell).lines
        assert notebook.ns["total"] == 11
    with kernel(shell) as notebook:
        notebook.ok("total = 20")
        lines = notebook.ok(cell).lines
        assert "  note: total kept as now, not as the first run met them" in lines
        assert notebook.ns["total"] == 21


def test_a_library_that_the_cell_imports_is_rewound_when_it_comes(folder: Path) -> None:
    cell = "%%rngcheckpoint late --keep\nimport numpy as np, random\nprint(np.random.rand())"
    drawn = []
    for _ in range(3):
        with driver.started() as real:
            real.ok(f"import os; os.chdir({str(folder)!r})\n%load_ext nbseed")
            ran = real.ok(cell)
            drawn.append(ran.stdout)
            assert "not rewound" not in "".join(ran.texts)
    assert len(set(drawn)) == 1


# -- what is kept is seen and dropped --------------------------------------------------------------


def test_the_list_shows_what_is_on_disk(shell: InteractiveShell) -> None:
    with kernel(shell) as notebook:
        notebook.ok("%%rngcheckpoint plain\nrandom.random()")
        assert "on disk" not in repr(notebook.ok("%rng list").value)
        notebook.ok(TRAIN)
        notebook.ok(TRAIN)
        lines = repr(notebook.ok("%rng list").value).splitlines()
        assert lines[0].split() == ["checkpoint", "seed", "state", "runs", "on", "disk"]
        marks = [CHECKPOINTS.find(name).snapshot.fingerprint[:8] for name in ("plain", "train")]
        assert lines[1].split() == ["plain", "3", marks[0], "1"]
        assert lines[2].split() == ["train", "3", marks[1], "2", "2", "runs"]
    with kernel(shell) as notebook:
        lines = repr(notebook.ok("%rng list").value).splitlines()
        assert lines[1].split() == ["train", "3", marks[1], "2", "runs"]
        assert lines[2] == "runs on disk alone come in with %losses NAME, or when the cell runs"


def test_drop_takes_it_off_the_disk_too(shell: InteractiveShell) -> None:
    with kernel(shell) as notebook:
        notebook.ok(TRAIN)
    with kernel(shell) as notebook:
        said = notebook.ok("%rng drop train").out
        assert said == f"dropped train: 1 checkpoint and the runs, in {FILE} too\n"
        assert nbseed.runs() == []
    with kernel(shell) as notebook:
        assert "run 1: checkpoint " in notebook.ok(TRAIN).lines[0]


def test_restore_reaches_what_an_earlier_session_has_kept(shell: InteractiveShell) -> None:
    with kernel(shell) as notebook:
        start = nbseed.snapshot()
        notebook.ok(TRAIN)
    with kernel(shell) as notebook:
        notebook.ok("random.random()")
        assert notebook.ok("%rng restore train").out.startswith("restored train, ")
        assert nbseed.snapshot() == start
        said = str(notebook.run("%rng restore other").error)
        assert said == "no checkpoint is called 'other'; there are: train"


def test_the_panels_undo_brings_back_what_it_has_dropped_from_the_disk(
    shell: InteractiveShell,
) -> None:
    with kernel(shell) as notebook:
        notebook.ok(TRAIN)
        notebook.ok(TRAIN)
        kept, panel = losses(), Panel()
        panel._click_drop(None)
        assert Store().names() == []
        panel._click_undo(None)
        panel.close()
        notebook.ok(TRAIN)
    with kernel(shell):
        assert losses() == [*kept, kept[0]]


def test_runs_become_a_frame(shell: InteractiveShell) -> None:
    with kernel(shell) as notebook:
        notebook.ok(TRAIN)
        notebook.ok("%%rngcheckpoint silent\nrandom.random()")
    with kernel(shell, None) as notebook:
        notebook.ok("%%rngcheckpoint silent\nrandom.random()")
        frame = nbseed.runs().to_dataframe()
        assert list(frame.columns) == ["run", "name", "seed", "status", "metric", "step", "value"]
        train = frame[frame.name == "train"]
        assert train.value.tolist() == losses()[0]
        assert train.step.tolist() == [0, 1, 2, 3]
        assert set(train.metric) == {"loss"}
        assert set(train.seed) == {3}
        silent = frame[frame.name == "silent"]
        assert len(silent) == 1
        assert silent.seed.isna().all()
        assert silent.value.isna().all()
        assert str(frame.dtypes["value"]) == "float64"
        assert nbseed.runs("train").to_dataframe().equals(train.reset_index(drop=True))
    assert isinstance(nbseed.runs().to_dataframe(), pd.DataFrame)


# -- where it is -----------------------------------------------------------------------------------


def test_the_place_is_set_by_config(shell: InteractiveShell, folder: Path) -> None:
    with kernel(shell) as notebook:
        notebook.ok("%config NBSeed.store = 'deep/er/mine.sqlite'")
        assert "  note: kept in deep/er/mine.sqlite" in notebook.ok(TRAIN).lines
    assert [p.name for p in folder.iterdir()] == ["deep"]
    with kernel(shell):
        assert nbseed.runs() == []


def test_the_place_is_set_by_the_environment(
    shell: InteractiveShell, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NBSEED_STORE", str(folder / "env.sqlite"))
    with kernel(shell) as notebook:
        notebook.ok(TRAIN)
    assert [p.name for p in folder.iterdir()] == ["env.sqlite"]


def test_the_size_is_set_by_config(shell: InteractiveShell) -> None:
    with kernel(shell) as notebook:
        notebook.ok("%config NBSeed.store_megabytes = 1")
        cell = "%%rngcheckpoint long --keep\nfor i in range(40_000):\n    nbseed.track('a', i)"
        for _ in range(6):
            notebook.ok(cell)
    with kernel(shell):
        kept = [run.number for run in nbseed.runs("long")]
        assert kept[0] == 1
        assert kept[-1] == 6
        assert len(kept) < 6
    assert os.path.getsize(FILE) < 2_500_000


# -- when the disk fails ---------------------------------------------------------------------------


def test_a_store_that_fails_is_one_note_and_the_cell_runs_on(shell: InteractiveShell) -> None:
    with kernel(shell) as notebook:
        notebook.ok(TRAIN)
        first = losses()[0]
        other = sqlite3.connect(FILE, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        lines = notebook.ok(TRAIN).lines
        other.close()
        assert "same draws; losses bit-identical" in lines[0]
        said = f"{FILE} is locked: another kernel writes to it"
        assert lines[1:] == [f"  note: this run is kept in memory only: {said}"]
        assert notebook.ok(TRAIN).lines[1:] == []
        assert losses() == [first] * 3
    with kernel(shell):
        assert [run.number for run in nbseed.runs("train")] == [1, 3]


def test_a_damaged_store_is_one_note_everywhere(shell: InteractiveShell, folder: Path) -> None:
    (folder / ".nbseed").mkdir()
    (folder / FILE).write_bytes(b"no database" * 100)
    said = f"{FILE} is damaged (file is not a database); move it away, and a new one is made"
    with kernel(shell) as notebook:
        assert notebook.ok(TRAIN).lines[1:] == [f"  note: this run is kept in memory only: {said}"]
        assert notebook.ok(TRAIN).lines[0].startswith("train, run 2: rewound to ")
        assert repr(notebook.ok("%rng list").value).splitlines()[-1] == said
        assert str(notebook.run("%rng restore nobody").error) == said
        before = CHECKPOINTS.names()
        assert str(notebook.run("%rng drop train").error) == said
        assert CHECKPOINTS.names() == before
    assert (folder / FILE).read_bytes() == b"no database" * 100


def test_a_store_that_vanishes_is_made_again(shell: InteractiveShell, folder: Path) -> None:
    with kernel(shell) as notebook:
        notebook.ok(TRAIN)
        (folder / FILE).unlink()
        notebook.ok(TRAIN)
    with kernel(shell):
        assert [run.number for run in nbseed.runs("train")] == [2]


# -- kernels ---------------------------------------------------------------------------------------


def test_a_killed_kernel_loses_only_the_run_in_progress(folder: Path) -> None:
    head = f"import os; os.chdir({str(folder)!r})\nimport random, nbseed\n%load_ext nbseed"
    cell = "%%rngcheckpoint slow --keep\nnbseed.track('a', random.random())"
    with driver.started() as real:
        real.ok(head)
        real.ok(cell)
        real.ok(cell)
        text = f"{cell}\nimport os, signal\nos.kill(os.getpid(), signal.SIGKILL)"
        real._send(text, None, {})
        while real.manager.is_alive():
            pass
    with driver.started() as real:
        real.ok(head)
        ran = real.ok(cell)
        assert ran.texts[0].startswith("slow, run 3: rewound to ")
        assert "bit-identical (1 step)" in ran.texts[0]


def test_two_kernels_share_a_checkpoint_and_see_each_others_runs(folder: Path) -> None:
    head = f"import os; os.chdir({str(folder)!r})\nimport random, nbseed\n%load_ext nbseed"
    cell = "%%rngcheckpoint both --keep\nnbseed.track('a', random.random())"
    with driver.started() as one, driver.started() as other:
        for real in (one, other):
            real.ok(head)
        assert one.ok(cell).texts[0].startswith("both, run 1: checkpoint ")
        assert other.ok(cell).texts[0].startswith("both, run 2: rewound to ")
        assert one.ok(cell).texts[0].startswith("both, run 3: rewound to ")
        count = "print([r.number for r in nbseed.runs('both')])"
        assert one.ok(count).stdout == other.ok(count).stdout == "[1, 2, 3]\n"
