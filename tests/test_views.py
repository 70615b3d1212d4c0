"""The magics that look, in a real shell: ``%rng`` and ``%losses``, and every text that they say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from shells import Notebook, loaded, started

import nbseed
from nbseed.answer import Answer


@pytest.fixture(scope="module")
def shell() -> Iterator[InteractiveShell]:
    pytest.importorskip("torch")  # its generator is among those that are shown
    with started() as shell:
        yield shell


@pytest.fixture
def notebook(shell: InteractiveShell) -> Iterator[Notebook]:
    with loaded(shell) as notebook:
        yield notebook


# -- %rng ------------------------------------------------------------------------------------------


def test_the_generators_are_shown_with_their_fingerprints(notebook: Notebook) -> None:
    notebook.ok("import numpy as np\nrng = np.random.default_rng(5)")
    taken = nbseed.snapshot()
    for line in ("%rng", "%rng show"):
        ran = notebook.ok(line)
        assert repr(ran.value).splitlines() == [
            "generator  state     last moved by  draws",
            f"python     {taken.fingerprints['python'][:8]}",
            f"numpy      {taken.fingerprints['numpy'][:8]}",
            f"torch.cpu  {taken.fingerprints['torch.cpu'][:8]}",
            f"user:rng   {taken.fingerprints['user:rng'][:8]}",
            f"all        {taken.fingerprint[:8]}",
        ]
        assert repr(ran.value) in ran.out


def test_who_moved_a_generator_last_and_how_far_is_shown(notebook: Notebook) -> None:
    first = notebook.shell.execution_count
    notebook.ok("import random, numpy as np, torch")
    notebook.ok("%seed 3")
    notebook.ok("%%rngcheckpoint train\nx = torch.rand(5)")
    notebook.ok("y = random.random()")
    np.random.rand(2)
    looked = notebook.ok("%rng")
    assert [row[::2] for row in looked.value.rows] == [
        ("python", f"[{first + 3}]"),
        ("numpy", f"between [{first + 3}] and [{first + 4}]"),
        ("torch.cpu", f"[{first + 2}] train"),
        ("all", ""),
    ]
    assert [row[3] for row in looked.value.rows] == ["2 words", "4 words", "5 words", ""]
    seeded = notebook.ok("%seed 4\nz = random.random()\n%rng")
    by = f"[{first + 5}], this cell"
    assert [row[2:] for row in seeded.value.rows[:3]] == [(by, "seeded with 4")] * 3


def test_the_checkpoints_are_listed(notebook: Notebook) -> None:
    assert repr(notebook.ok("%rng list").value) == ("no checkpoints yet: %%rngcheckpoint makes one")
    notebook.ok("%%rngcheckpoint one\nx = 1")
    notebook.ok("%seed 3")
    notebook.ok("%%rngcheckpoint two\nx = 1")
    notebook.ok("%%rngcheckpoint two\nx = 1")
    one, two = nbseed.runs("one")[0], nbseed.runs("two")[0]
    assert repr(notebook.ok("%rng list").value).splitlines() == [
        "checkpoint  seed  state     runs",
        f"one         none  {one.start[:8]}  1",
        f"two         3     {two.start[:8]}  2",
    ]


def test_a_checkpoint_is_restored_by_name(notebook: Notebook) -> None:
    notebook.ok("import random")
    first = notebook.ok("%%rngcheckpoint train\nrandom.random()").value
    start = nbseed.runs("train")[0].start
    assert notebook.ok("%rng restore train").lines == [
        f"restored train, {start[:8]}: python, numpy, torch.cpu"
    ]
    assert notebook.ok("random.random()").value == first


def test_a_restore_says_what_it_left_out(notebook: Notebook) -> None:
    notebook.ok("import numpy as np\nrng = np.random.default_rng(5)")
    notebook.ok("%%rngcheckpoint train\nrng.random()")
    notebook.ok("other = rng\ndel rng\nnew = np.random.default_rng(6)")
    assert notebook.ok("%rng restore train").lines[1:] == [
        "  note: not rewound, no longer there: user:rng",
        "  note: not in the checkpoint: user:other, user:new",
    ]


def test_a_checkpoint_is_dropped_with_its_runs(notebook: Notebook) -> None:
    notebook.ok("%%rngcheckpoint train\nx = 1")
    notebook.ok("%seed 3")
    notebook.ok("%%rngcheckpoint train\nx = 1")
    assert notebook.ok("%rng drop train").lines == ["dropped train: 2 checkpoints and the runs"]
    assert nbseed.runs() == []
    assert notebook.ok("%%rngcheckpoint train\nx = 1").out.startswith("train, run 1: checkpoint ")
    assert notebook.ok("%rng drop train").lines == ["dropped train: 1 checkpoint and the runs"]


def test_checkpoints_are_compared(notebook: Notebook) -> None:
    notebook.ok("import random")
    notebook.ok("%%rngcheckpoint one\nrandom.random()")
    notebook.ok("%%rngcheckpoint two\nx = 1")
    assert notebook.ok("%rng diff one two").lines == ["one and two: differ: python"]
    assert notebook.ok("%rng diff two").lines == ["two and now: no difference"]
    notebook.ok("import numpy as np\nx = np.random.rand()")
    assert notebook.ok("%rng diff one").lines == ["one and now: differ: numpy, python"]


# -- %rng why --------------------------------------------------------------------------------------


def test_the_last_run_is_explained_beside_the_first(notebook: Notebook) -> None:
    notebook.ok("import random\nlr = 0.1\nitems = [1, 2]")
    cell = "%%rngcheckpoint train\nx = random.random() * lr * items[0]"
    notebook.ok(cell)
    notebook.ok("%%rngcheckpoint other\ny = 1")
    notebook.ok("lr = 0.2\nitems.reverse()")
    report = notebook.ok(cell).lines[-1]
    assert report.endswith("; same draws; x differs; why: lr and items were not what run 1 met")
    for line in ("%rng why", "%rng why train"):
        ran = notebook.ok(line)
        assert isinstance(ran.value, Answer)
        assert repr(ran.value).splitlines() == [
            report,
            "run 2 beside run 1: why it differs, the likeliest first",
            " 1. lr and items were not what run 1 met",
            "      lr (float): 0.2, was 0.1",
            "      items (list): the same items in another order",
            (
                "    try: `lr = 0.1`; or `%%rngcheckpoint train --with lr,items` puts them back "
                "before each run (make them anew first, and add `--reset` once)"
            ),
            (
                "looked at and found no cause in: how the runs ended; the cell's code and its "
                "functions; seeds; entropy that no seed controls; switches, clocks and kernels; "
                "files, folders and environment variables; "
                "what a rewind does not reach"
            ),
        ]
        assert repr(ran.value) in ran.out


def test_an_unseeded_generator_is_named_with_its_line_and_a_remedy(notebook: Notebook) -> None:
    notebook.ok("import numpy as np")
    cell = "%%rngcheckpoint train\nn = 2\nx = [np.random.default_rng().random() for _ in range(n)]"
    notebook.ok(cell)
    notebook.ok(cell)
    lines = repr(notebook.ok("%rng why").value).splitlines()
    assert lines[2:5] == [
        " 1. np.random.default_rng() without a seed (line 3)",
        (
            "      line 3, x = [np.random.default_rng().random() for _ in range(n)]: "
            "np.random.default_rng() 2 times, which no seed controls"
        ),
        "    try: `np.random.default_rng(3)`, or `%seed 3 --pin-entropy`",
    ]
    notebook.ok("%seed 3 --pin-entropy")  # and what is to be typed helps
    values = [notebook.ok(f"{cell}\nx").value for _ in range(2)]
    assert values[0] == values[1]
    assert notebook.ok("%rng why").value.explanation.same


def test_another_number_of_draws_is_shown(notebook: Notebook) -> None:
    notebook.ok("import random\nn = 2")
    cell = "%%rngcheckpoint train\nx = [random.random() for _ in range(n)]"
    notebook.ok(cell)
    notebook.ns["n"] = 3
    notebook.ok(cell)
    found = notebook.ok("%rng why").value.explanation
    assert [cause.said for cause in found.causes] == ["n is 3, was 2"]
    assert found.draws == ("python: 6 words, run 1: 4 words",)


def test_an_identical_run_has_no_cause(notebook: Notebook) -> None:
    notebook.ok("import random")
    cell = "%%rngcheckpoint train\nx = random.random()"
    notebook.ok(cell)
    said = notebook.ok(cell).lines[-1]
    assert repr(notebook.ok("%rng why").value).splitlines() == [
        said,
        "run 2 beside run 1: nothing differs, nothing to explain",
    ]


def test_a_single_run_has_nothing_beside_it(notebook: Notebook) -> None:
    notebook.ok("import numpy as np\ndef colors():\n    np.random.seed(0)")
    notebook.ok("%%rngcheckpoint train\nnp.random.seed(3)\ncolors()\nx = np.random.rand()")
    ran = notebook.ok("%rng why")
    assert ran.value is None
    assert ran.lines == [
        "train has run once from its checkpoint: nothing to compare it with yet",
        (
            "worth knowing: colors re-seeds numpy once (line 3): np.random.seed(0); "
            "what is drawn after it does not depend on your seed"
        ),
    ]


def test_a_run_that_did_not_finish_is_said(notebook: Notebook) -> None:
    notebook.ok("wrong = False")
    cell = "%%rngcheckpoint train\nif wrong:\n    1 / 0"
    notebook.ok(cell)
    notebook.ns["wrong"] = True
    notebook.run(cell)
    found = notebook.ok("%rng why").value.explanation
    assert [cause.said for cause in found.causes] == [
        "run 2 ended by ZeroDivisionError: division by zero, run 1 went to its end",
        "wrong is True, was False",
    ]


def test_looking_at_why_moves_nothing(notebook: Notebook) -> None:
    notebook.ok("import random\nn = 2")
    cell = "%%rngcheckpoint train\nx = [random.random() for _ in range(n)]"
    notebook.ok(cell)
    notebook.ns["n"] = 3
    notebook.ok(cell)
    before = nbseed.fingerprints()
    notebook.ok("%rng why")
    assert nbseed.fingerprints() == before


# -- wrong calls and help --------------------------------------------------------------------------

KNOWN = "%rng knows checkpoint, diff, drop, list, load, restore, save, show, sync, why"
USAGE = {
    "%rng wrong": f"{KNOWN}; got 'wrong'",
    "%rng --wrong": f"{KNOWN}; got '--wrong'",
    "%rng restore": "%rng restore takes one name, got 0",
    "%rng list a": "%rng list takes no name, got 1",
    "%rng diff": "%rng diff takes one name or two names, got 0",
    "%rng diff a b c": "%rng diff takes one name or two names, got 3",
    "%rng why a b": "%rng why takes no name or one name, got 2",
    "%rng why": "no checkpointed cell has run; %%rngcheckpoint makes a cell one",
    "%rng why a": "no checkpoint is called 'a'; there are: none yet",
    "%rng restore a": "no checkpoint is called 'a'; there are: none yet",
    "%rng drop 'a": "%rng drop 'a: No closing quotation",
    "%losses": "no checkpointed cell has run; %%rngcheckpoint makes a cell one",
    "%losses a": "no checkpoint is called 'a'; there are: none yet",
    "%losses a b": "unrecognized arguments: b",
    "%losses --wrong": "unrecognized arguments: --wrong",
    "%losses 'a": "%losses 'a: No closing quotation",
    "%losses --last x": "argument --last: invalid int value: 'x'",
}


@pytest.mark.parametrize("line", USAGE)
def test_a_wrong_call_is_one_line_and_no_generator_has_moved(notebook: Notebook, line: str) -> None:
    before = nbseed.fingerprints()
    ran = notebook.run(line)
    assert isinstance(ran.error, UsageError)
    assert ran.err.splitlines() == [f"UsageError: {USAGE[line]}"]
    assert ran.out == ""
    assert nbseed.fingerprints() == before


HELP = {
    "rng": ("%rng list", "%rng restore", "%rng drop", "%rng diff", "%rng why"),
    "losses": ("NAME", "--metric", "--last", "--log", "--save"),
}


@pytest.mark.parametrize("magic", HELP)
def test_help_is_a_manual_page(shell: InteractiveShell, notebook: Notebook, magic: str) -> None:
    page = shell.find_line_magic(magic).__doc__
    assert page is not None
    assert "::\n" in page
    assert [word for word in HELP[magic] if word not in page] == []
    assert all(len(line) <= 100 for line in page.splitlines())


@pytest.mark.parametrize(
    ("place", "line"),
    [
        ("nbseed.views.tables.of_generators", "%rng"),
        ("nbseed.views.why.explain", "%rng why"),
        ("nbseed.views.show_losses", "%losses"),
    ],
)
def test_a_fault_is_one_line_and_the_cell_runs_on(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch, place: str, line: str
) -> None:
    def broken(*args: object) -> Any:
        raise OSError("by the test")

    for _ in range(2):
        notebook.ok("%%rngcheckpoint train\nx = 1")
    with monkeypatch.context() as patched:
        patched.setattr(place, broken)
        ran = notebook.run(f"{line}\n6 * 7")
    magic = line.split()[0].removeprefix("%")
    assert (ran.error, ran.value) == (None, 42)
    assert ran.err == f"nbseed: {magic} failed (OSError: by the test); the cell runs without it\n"


# -- %losses ---------------------------------------------------------------------------------------

TRACKED = "%%rngcheckpoint train --track a\nfor i in range(3):\n    a = random.random()"


def test_the_verdict_is_said_in_a_terminal(notebook: Notebook) -> None:
    notebook.ok("import random")
    notebook.ok(TRACKED)
    notebook.ok(TRACKED)
    assert notebook.ok("%losses --metric a").lines == [
        "train: 2 runs, bit-identical (--save FILE writes the picture)"
    ]


def test_the_picture_is_saved(notebook: Notebook, tmp_path: Path) -> None:
    from matplotlib import pyplot

    notebook.ok("import random")
    notebook.ok(TRACKED)
    file = tmp_path / "runs.png"
    assert notebook.ok(f"%losses train --metric a --save {file}").lines == ["train: 1 run, 3 steps"]
    assert file.read_bytes().startswith(b"\x89PNG")
    assert pyplot.get_fignums() == []


def test_the_picture_is_saved_under_a_name_in_quotes(notebook: Notebook, tmp_path: Path) -> None:
    notebook.ok("import random")
    notebook.ok(TRACKED)
    file = tmp_path / "runs of today.png"
    notebook.ok(f"%losses train --metric a --save '{file}'")
    assert file.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("%losses", "train: no run has the metric 'loss'; recorded: a"),
        ("%losses train --metric b", "train: no run has the metric 'b'; recorded: a"),
        ("%losses other", "no checkpoint is called 'other'; there are: train"),
    ],
)
def test_what_cannot_be_drawn_is_said(notebook: Notebook, line: str, said: str) -> None:
    notebook.ok("import random")
    notebook.ok(TRACKED)
    ran = notebook.run(line)
    assert isinstance(ran.error, UsageError)
    assert ran.err == f"UsageError: {said}\n"


@pytest.mark.parametrize("file", ["missing/runs.png", "runs.wrong"])
def test_a_picture_that_cannot_be_written_is_said(
    notebook: Notebook, tmp_path: Path, file: str
) -> None:
    from matplotlib import pyplot

    notebook.ok("import random")
    notebook.ok(TRACKED)
    ran = notebook.run(f"%losses --metric a --save {tmp_path / file}")
    assert isinstance(ran.error, UsageError)
    assert ran.err.startswith(f"UsageError: {tmp_path / file} was not written: ")
    assert len(ran.err.splitlines()) == 1
    assert pyplot.get_fignums() == []
