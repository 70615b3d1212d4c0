"""Completion of the magics' options and of checkpoint names, as IPython's completer gives it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
from shells import Notebook, loaded, started

from nbseed import completion


@pytest.fixture(scope="module")
def shell() -> Iterator[InteractiveShell]:
    with started() as shell:
        yield shell


@pytest.fixture
def notebook(shell: InteractiveShell) -> Iterator[Notebook]:
    with loaded(shell) as notebook:
        notebook.ok("%%rngcheckpoint train --track score,other\nother = score = 1.0")
        notebook.ok("%%rngcheckpoint test\nx = 1")
        yield notebook


OPTIONS = {
    "seed": ["--deterministic", "--each-cell", "--strict", "--pin-entropy", "--new"],
    "rngcheckpoint": ["--runs", "--track", "--with", "--probe", "--isolate", "--reset", "--keep"],
    "losses": ["--metric", "--last", "--log", "--save"],
}
NAMES = ["train", "test"]
ACTIONS = ["show", "list", "checkpoint", "restore", "drop", "diff", "save", "load", "sync", "why"]
WORDS = {
    "%seed ": OPTIONS["seed"],
    "%%seed ": OPTIONS["seed"],
    "%seed 3 ": OPTIONS["seed"],
    "%seed 3 --new ": ["--deterministic", "--each-cell", "--strict", "--pin-entropy"],
    "%seed 3 --strict ": ["--deterministic", "--each-cell", "--pin-entropy", "--new"],
    "%%rngcheckpoint ": [*NAMES, *OPTIONS["rngcheckpoint"]],
    "%%rngcheckpoint tr": [*NAMES, *OPTIONS["rngcheckpoint"]],
    "%%rngcheckpoint train ": OPTIONS["rngcheckpoint"],
    "%%rngcheckpoint train --reset --": [
        "--runs",
        "--track",
        "--with",
        "--probe",
        "--isolate",
        "--keep",
    ],
    "%losses ": [*NAMES, *OPTIONS["losses"]],
    "%losses train --metric ": ["other", "score"],
    "%losses train --metric s": ["other", "score"],
    "%rng ": ACTIONS,
    "%rng re": ACTIONS,
    "%rng restore ": NAMES,
    "%rng drop t": NAMES,
    "%rng diff train ": NAMES,
    "%rng why ": NAMES,
    "%rng show ": [],
    "%rng": [],
    "%seeds ": [],
    "x = '%seed '": [],
    "seed ": [],
    "": [],
}


@pytest.mark.parametrize("line", WORDS)
def test_the_words_that_may_stand_at_the_end(notebook: Notebook, line: str) -> None:
    assert completion.words(line) == WORDS[line]


LINES = {
    "%seed 3 --d": "%seed 3 --deterministic",
    "%seed 3 --each": "%seed 3 --each-cell",
    "%seed 3 --each-": "%seed 3 --each-cell",
    "%%rngcheckpoint train --tr": "%%rngcheckpoint train --track",
    "%%rngcheckpoint train --w": "%%rngcheckpoint train --with",
    "%%rngcheckpoint tra": "%%rngcheckpoint train",
    "%seed 3 --pin": "%seed 3 --pin-entropy",
    "%rng wh": "%rng why",
    "%rng why te": "%rng why test",
    "%losses train --s": "%losses train --save",
    "%losses --metric sc": "%losses --metric score",
    "%rng li": "%rng list",
    "%rng restore te": "%rng restore test",
}


@pytest.mark.parametrize("line", LINES)
def test_a_front_end_completes_the_line(
    shell: InteractiveShell, notebook: Notebook, line: str
) -> None:
    with provisionalcompleter():
        found = [
            line[: one.start] + one.text + line[one.end :]
            for one in shell.Completer.completions(line, len(line))
        ]
    assert found == [LINES[line]]


@pytest.mark.filterwarnings("ignore:`Completer.complete`:PendingDeprecationWarning")
@pytest.mark.parametrize("line", LINES)
def test_the_completer_without_positions_completes_the_line(
    shell: InteractiveShell, notebook: Notebook, line: str
) -> None:
    token, matches = shell.Completer.complete(line_buffer=line, cursor_pos=len(line))
    assert [line[: len(line) - len(token)] + match for match in matches] == [LINES[line]]


def test_a_second_line_of_a_cell_completes_too(shell: InteractiveShell, notebook: Notebook) -> None:
    with provisionalcompleter():
        text = "x = 1\n%rng restore te"
        found = [one.text for one in shell.Completer.completions(text, len(text))]
    assert found == ["test"]


def test_other_completions_go_on(shell: InteractiveShell, notebook: Notebook) -> None:
    with provisionalcompleter():
        found = [one.text for one in shell.Completer.completions("import rando", 12)]
        magics = [one.text for one in shell.Completer.completions("%rngch", 6)]
    assert "random" in found
    assert {"%rngcheckpoint", "%%rngcheckpoint"} <= set(magics)
