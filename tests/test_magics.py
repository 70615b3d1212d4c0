"""The magics in a real shell: what a cell does, and every text that they say."""

from __future__ import annotations

import hashlib
import random
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from shells import Notebook, loaded, started

import nbseed
from nbseed import losses, seeding, watch
from nbseed.errors import EntropyError

BACKWARD = torch.Tensor.backward
ALL = """
import random, numpy as np, torch
rng = np.random.default_rng(5)
own = random.Random(6)
legacy = np.random.RandomState(7)
stream = torch.Generator().manual_seed(8)
loader = torch.utils.data.DataLoader(
    torch.arange(8), 4, shuffle=True, generator=torch.Generator().manual_seed(9)
)
"""
DRAW_ALL = """
result = [
    random.random(), random.gauss(0, 1), np.random.standard_normal(3).tolist(),
    torch.randn(3, dtype=torch.float64).tolist(), rng.normal(size=3).tolist(), own.gauss(0, 1),
    legacy.standard_normal(3).tolist(), torch.randn(3, generator=stream).tolist(),
    [batch.tolist() for batch in loader], rng.spawn(1)[0].random(),
]
"""


@pytest.fixture(scope="module")
def shell() -> Iterator[InteractiveShell]:
    with started() as shell:
        yield shell


@pytest.fixture
def notebook(shell: InteractiveShell) -> Iterator[Notebook]:
    with loaded(shell) as notebook:
        yield notebook
    assert torch.Tensor.backward is BACKWARD


def marked(text: str) -> str:
    """A report with its fingerprints and text keys replaced: they differ from run to run."""
    return re.sub(r"\b(?:[0-9a-f]{8})\b", "########", text)


# -- the same draws --------------------------------------------------------------------------------


@pytest.mark.parametrize("cell_id", [None, "5f1c2e9a-0000"])
def test_rerun_draws_the_same_numbers_from_every_generator_at_once(
    notebook: Notebook, cell_id: str | None
) -> None:
    notebook.ok(ALL)
    cell = f"%%rngcheckpoint\n{DRAW_ALL}"
    notebook.ok(cell, cell_id)
    first = notebook.ns["result"]
    for _ in range(2):
        notebook.ok(
            "random.random(); np.random.rand(3); torch.rand(3); rng.random(); next(iter(loader))"
        )
        again = notebook.ok(cell, cell_id)
        assert notebook.ns["result"] == first
        assert "same draws" in again.out
    notebook.ok(DRAW_ALL)
    assert notebook.ns["result"] != first


EACH = {
    "python": "random.random()",
    "python's kept normal": "random.gauss(0, 1)",
    "numpy": "np.random.rand(3).tolist()",
    "numpy's kept normal": "np.random.standard_normal(3).tolist()",
    "torch": "torch.rand(3).tolist()",
    "torch's kept normal": "torch.randn(1, dtype=torch.float64).tolist()",
    "a generator in a variable": "rng.random()",
    "its children": "rng.spawn(1)[0].random()",
    "a Random": "own.random()",
    "a RandomState": "legacy.rand()",
    "a torch.Generator": "torch.rand(2, generator=stream).tolist()",
    "a loader's generator": "[batch.tolist() for batch in loader]",
}


@pytest.mark.parametrize("draw", EACH.values(), ids=EACH.keys())
def test_rerun_draws_the_same_numbers(notebook: Notebook, draw: str) -> None:
    notebook.ok(ALL)
    notebook.ok(draw)
    values = [notebook.ok(f"%%rngcheckpoint\n{draw}", "id").value for _ in range(3)]
    assert values[0] == values[1] == values[2]
    assert notebook.ok(draw).value != values[0]


CELLS = {
    "await": "import asyncio\nawait asyncio.sleep(0)\n[random.random()]",
    "async for": "async def draws():\n    yield random.random()\n[x async for x in draws()]",
    "async with": (
        "import contextlib\n"
        "@contextlib.asynccontextmanager\n"
        "async def drawn():\n    yield random.random()\n"
        "async with drawn() as x:\n    pass\nx"
    ),
    "blank lines ahead": "\n\n\nrandom.random()",
    "a comment ahead": "# drawn\nrandom.random()",
    "a line magic": "%xmode Context\nrandom.random()",
    "a shell command": "!true\nrandom.random()",
    "help is asked for": "x = random.random()\nx",
    "a text with quotes": "t = '''a\\n\"\"\"b'''\n(t, random.random())",
    "a function": "def f():\n    return random.random()\nf()",
    "a class": "class A:\n    x = random.random()\nA.x",
}


@pytest.mark.parametrize("body", CELLS.values(), ids=CELLS.keys())
@pytest.mark.parametrize("cell_id", [None, "id"])
def test_rerun_draws_the_same_numbers_with(
    notebook: Notebook, body: str, cell_id: str | None
) -> None:
    notebook.ok("import random")
    values = [notebook.ok(f"%%rngcheckpoint train\n{body}", cell_id).value for _ in range(2)]
    assert values[0] is not None
    assert values[0] == values[1]
    assert notebook.ok(body).value != values[0]


AROUND = {
    "%%time outside": "%%time\n%%rngcheckpoint train\nx = random.random()",
    "%%time inside": "%%rngcheckpoint train\n%%time\nx = random.random()",
    "%%capture outside": "%%capture said\n%%rngcheckpoint train\nx = random.random()",
    "%%capture inside": "%%rngcheckpoint train\n%%capture said\nx = random.random()",
    "%%timeit outside": "%%timeit -n 2 -r 2\n%%rngcheckpoint train\nglobal x\nx = random.random()",
    "%%timeit inside": "%%rngcheckpoint train\n%%timeit -n 2 -r 2\nglobal x\nx = random.random()",
    "%%seed outside": "%%seed 7\n%%rngcheckpoint train\nx = random.random()",
    "%%seed inside": "%%rngcheckpoint train\n%%seed 7\nx = random.random()",
    "%time": "%%rngcheckpoint train\n%time x = random.random()",
    "itself": "%%rngcheckpoint outer\n%%rngcheckpoint train\nx = random.random()",
    "run_cell": "%%rngcheckpoint train\nget_ipython().run_cell('x = random.random()')",
}  # fmt: skip


@pytest.mark.parametrize("cell", AROUND.values(), ids=AROUND.keys())
def test_rerun_draws_the_same_numbers_around_and_inside(notebook: Notebook, cell: str) -> None:
    notebook.ok("import random")
    values = []
    for _ in range(3):
        notebook.run(cell)
        values.append(notebook.ns.pop("x"))
        notebook.ok("random.random()")
    assert values[0] == values[1] == values[2]
    assert [run.status for run in nbseed.runs("train")] == ["ok"] * len(nbseed.runs("train"))
    assert notebook.ok("random.random()").value != values[0]


def test_a_script_that_the_cell_runs_draws_the_same_numbers(
    notebook: Notebook, tmp_path: Path
) -> None:
    script = tmp_path / "draw.py"
    script.write_text("import random\nx = random.random()\nrng.random()\ny = rng.random()\n")
    notebook.ok("import numpy as np\nrng = np.random.default_rng()")
    drawn = []
    for _ in range(2):
        notebook.ok(f"%%rngcheckpoint\n%run -i {script}", "id")
        drawn.append((notebook.ns["x"], notebook.ns["y"]))
    assert drawn[0] == drawn[1]
    assert [set(run.ends) & {"user:rng"} for run in nbseed.runs()] == [{"user:rng"}] * 2


def test_an_object_that_was_replaced_under_its_name_is_rewound_too(notebook: Notebook) -> None:
    notebook.ok("import numpy as np\nrng = np.random.default_rng(1)")
    cell = "%%rngcheckpoint train\nresult = rng.random()"
    notebook.ok(cell)
    first = notebook.ns["result"]
    notebook.ok("rng = np.random.default_rng(2)")
    notebook.ok(cell)
    assert notebook.ns["result"] == first


def test_two_checkpoints_do_not_disturb_each_other(notebook: Notebook) -> None:
    notebook.ok("import random")
    one, two = (f"%%rngcheckpoint {name}\nrandom.random()" for name in ("one", "two"))
    first = {cell: notebook.ok(cell).value for cell in (one, two)}
    for cell in (two, two, one, two, one):
        assert notebook.ok(cell).value == first[cell]
    assert first[one] != first[two]


# -- %seed -----------------------------------------------------------------------------------------


def idiom(seed: int) -> list[Any]:
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    return draws()


def draws() -> list[Any]:
    return [random.random(), np.random.rand(3).tolist(), torch.rand(3).tolist()]


@pytest.mark.parametrize("seed", [0, 3, 2**32 - 1])
def test_a_seed_is_the_idiom(notebook: Notebook, seed: int) -> None:
    expected = idiom(seed)
    said = notebook.ok(f"%seed {seed}")
    assert draws() == expected
    assert said.lines == [f"seed {seed}: python, numpy, torch.cpu seeded"]


@pytest.mark.parametrize(
    "line", ["%seed {n + 1}", "%seed $n2", "%seed {config['seed']}", "%seed   3  "]
)
def test_expressions_and_variables_expand(notebook: Notebook, line: str) -> None:
    notebook.ok("n = 2; n2 = 3; config = {'seed': 3}")
    expected = idiom(3)
    assert notebook.ok(line).lines == ["seed 3: python, numpy, torch.cpu seeded"]
    assert draws() == expected


def test_what_is_in_force_is_shown(notebook: Notebook) -> None:
    assert notebook.ok("%seed").lines == ["no seed in force; %seed N sets one"]
    notebook.ok("%seed 3")
    assert notebook.ok("%seed").lines == ["seed 3 in force"]
    notebook.ok("%seed 4 --each-cell", "a")
    assert notebook.ok("%seed", "b").lines == ["seed 4 in force; each cell under a seed of its own"]


def test_each_cell_is_said(notebook: Notebook) -> None:
    assert notebook.ok("%seed 4 --each-cell").lines == [
        "seed 4: python, numpy, torch.cpu seeded; each later cell under a seed of its own"
    ]


def test_a_new_seed_is_shown_and_can_be_repeated(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.urandom", lambda n: b"\x07\x00\x00\x00")
    assert notebook.ok("%seed --new").lines == ["seed 7: python, numpy, torch.cpu seeded"]
    drawn = draws()
    assert drawn == idiom(7)


OPTIONS = ("--each-cell", "--deterministic", "--strict", "--pin-entropy")
NEED = "the options need a seed: %seed N [--deterministic] [--each-cell] [--strict] [--pin-entropy]"
USAGE = {
    "%seed -3": "N is an integer from 0 to 4294967295, got -3",
    "%seed 4294967296": "N is an integer from 0 to 4294967295, got 4294967296",
    "%seed 3.0": "N is an integer from 0 to 4294967295, got 3.0",
    "%seed three": "N is an integer from 0 to 4294967295, got three",
    "%seed 3 4": "unrecognized arguments: 4",
    "%seed 3 --wrong": "unrecognized arguments: --wrong",
    "%seed 3 --new": "--new picks a seed; 3 was given too",
    **{f"%seed {option}": NEED for option in OPTIONS},
    "%%seed\npass": "%%seed needs a seed: %%seed N",
    **{
        f"%%seed 3 {option}\npass": "%%seed takes a seed only; the options belong to %seed"
        for option in OPTIONS
    },
    "%%seed 4294967296\npass": "N is an integer from 0 to 4294967295, got 4294967296",
    "%rngcheckpoint": "%%rngcheckpoint stands at the head of a cell, with two % signs",
    "%rngcheckpoint a": "%%rngcheckpoint stands at the head of a cell, with two % signs",
    "%%rngcheckpoint --runs 0\npass": "--runs takes a number from 1 to 1000, got 0",
    "%%rngcheckpoint --runs x\npass": "argument --runs: invalid int value: 'x'",
    "%%rngcheckpoint a b\npass": "unrecognized arguments: b",
    "%%rngcheckpoint --track a-b\na = 1": ("--track takes variable names and commas, got 'a-b'"),
    "%%rngcheckpoint --track b\na = c = 1": "--track b: the cell assigns a, c, ran",
    "%%rngcheckpoint --track b\npass": "--track b: the cell assigns ran",
    "%%rngcheckpoint --with a-b\npass": "--with takes variable names and commas, got 'a-b'",
    "%%rngcheckpoint --with a,\npass": "--with takes variable names and commas, got 'a,'",
    "%%rngcheckpoint --with\npass": "argument --with: expected one argument",
    "%%rngcheckpoint --probe 3 4\npass": "unrecognized arguments: 4",
    "%%rngcheckpoint a --wrong\npass": "unrecognized arguments: --wrong",
    "%%rngcheckpoint --wrong\npass": "unrecognized arguments: --wrong",
    "%%rngcheckpoint a --strict\npass": "unrecognized arguments: --strict",
    "%seed '3": "%seed '3: No closing quotation",
    "%%rngcheckpoint 'a\npass": "%rngcheckpoint 'a: No closing quotation",
}


@pytest.mark.parametrize("cell", USAGE)
def test_a_wrong_call_is_one_line_and_no_generator_has_moved(notebook: Notebook, cell: str) -> None:
    before = nbseed.fingerprints()
    notebook.ns["ran"] = False
    ran = notebook.run(f"{cell}\nran = True" if cell.startswith("%%") else cell)
    assert isinstance(ran.error, UsageError)
    assert ran.err.splitlines() == [f"UsageError: {USAGE[cell]}"]
    assert ran.out == ""
    assert nbseed.fingerprints() == before
    assert notebook.ns["ran"] is False
    assert nbseed.runs() == []
    assert seeding.in_force() is None


HELP = {
    "seed": (
        "--deterministic", "--each-cell", "--strict", "--pin-entropy", "--new", "numpy.entropy",
    ),
    "rngcheckpoint": ("--runs", "--track", "--with", "--probe", "--isolate", "--reset", "NAME"),
}  # fmt: skip


@pytest.mark.parametrize("magic", HELP)
def test_help_is_a_manual_page(shell: InteractiveShell, notebook: Notebook, magic: str) -> None:
    page = shell.find_line_magic(magic).__doc__
    assert page is not None
    assert "::\n" in page
    assert f"%{magic}" in page
    assert [word for word in HELP[magic] if word not in page] == []
    assert all(len(line) <= 100 for line in page.splitlines())


# -- the seeds of single cells ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("drawn = draws()", None),
        ("drawn = draws()\n1 / 0", ZeroDivisionError),
        ("drawn = draws()\nraise KeyboardInterrupt", KeyboardInterrupt),
        ("drawn = draws()\nimport asyncio\nawait asyncio.sleep(0)\n1 / 0", ZeroDivisionError),
    ],
)
def test_a_cell_under_a_seed_puts_every_generator_back(
    notebook: Notebook, body: str, error: type[BaseException] | None
) -> None:
    expected = idiom(3)
    notebook.ns["draws"] = draws
    notebook.ok("%seed 4")
    notebook.ok("draws()")
    before = nbseed.fingerprints()
    ran = notebook.run(f"%%seed 3\n{body}")
    assert notebook.ns["drawn"] == expected
    assert type(ran.error) is (error or type(None))
    assert nbseed.fingerprints() == before
    assert notebook.ok("%seed").lines == ["seed 4 in force"]


def test_a_cell_under_a_wrong_seed_does_not_run(notebook: Notebook) -> None:
    ran = notebook.run("%%seed x\na = 1")
    assert isinstance(ran.error, UsageError)
    assert "a" not in notebook.ns


def test_a_seed_for_one_cell_is_in_force_in_it(notebook: Notebook) -> None:
    notebook.ok("import random")
    assert notebook.ok("%%seed 7\n%seed").lines == ["seed 7 in force"]
    assert notebook.ok("%seed").lines == ["no seed in force; %seed N sets one"]
    drawn = {}
    for seed in (7, 8, 7):
        ran = notebook.ok(f"%%seed {seed}\n%%rngcheckpoint train\nrandom.random()")
        assert drawn.setdefault(seed, ran.value) == ran.value == random.Random(seed).random()
    assert [run.seed for run in nbseed.runs("train")] == [7, 8, 7]


def test_a_new_seed_for_one_cell_is_shown(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = idiom(7)
    monkeypatch.setattr("nbseed.seeding.os.urandom", lambda n: b"\x07\x00\x00\x00")
    notebook.ns["draws"] = draws
    ran = notebook.ok("%%seed --new\ndrawn = draws()")
    assert ran.lines == ["this cell runs under seed 7"]
    assert notebook.ns["drawn"] == expected


def test_each_cell_draws_the_same_in_any_order_and_any_number_of_times(notebook: Notebook) -> None:
    notebook.ns["draws"] = draws
    notebook.ok("%seed 3 --each-cell", "zero")
    first = {name: notebook.ok("draws()", name).value for name in ("a", "b", "c")}
    for name in ("c", "a", "a", "b", "c"):
        assert notebook.ok("draws()", name).value == first[name]
    assert len({repr(drawn) for drawn in first.values()}) == 3
    notebook.ok("%seed 4 --each-cell", "zero")
    assert notebook.ok("draws()", "a").value != first["a"]
    notebook.ok("%seed 3 --each-cell", "zero")
    assert notebook.ok("draws()", "a").value == first["a"]
    notebook.ok("%seed 3", "zero")
    assert notebook.ok("draws()", "a").value == idiom(3)


@pytest.mark.parametrize(
    ("cell", "cell_id", "key"),
    [
        ("draws()", "a1", "id:a1"),
        ("draws()", None, "text:draws()"),
        ("%%rngcheckpoint\ndraws()", "a1", "id:a1"),
        ("%%rngcheckpoint train\ndraws()", "a1", "name:train"),
        ("%%rngcheckpoint --isolate train\ndraws()", "a1", "name:train"),
        ("%%rngcheckpoint\ndraws()", None, "text:draws()"),
    ],
)
def test_the_seed_of_a_cell_can_be_recomputed(
    notebook: Notebook, cell: str, cell_id: str | None, key: str
) -> None:
    digest = hashlib.blake2b(key.encode(), digest_size=16).digest()
    words = np.frombuffer(digest, "<u4").tolist()
    expected = idiom(int(np.random.SeedSequence([3, *words]).generate_state(1)[0]))
    notebook.ns["draws"] = draws
    notebook.ok("%seed 3 --each-cell", "zero")
    assert notebook.ok(cell, cell_id).value == expected


def test_each_cell_says_once_that_the_front_end_gives_no_identity(notebook: Notebook) -> None:
    hint = (
        "nbseed: this front end gives cells no identity: with --each-cell a cell's seed comes "
        "from its text, and an edit changes it"
    )
    notebook.ok("%seed 3 --each-cell")
    assert notebook.ok("a = 1").lines == [hint]
    assert notebook.ok("a = 2").lines == []


# -- checkpoints and seeds -------------------------------------------------------------------------


def test_a_checkpoint_belongs_to_the_seed_in_force(notebook: Notebook) -> None:
    notebook.ok("import random")
    cell = "%%rngcheckpoint train\nrandom.random()"
    drawn, said = {}, []
    for seed in (3, 4, 3):
        notebook.ok(f"%seed {seed}\nx = random.random()")
        ran = notebook.ok(cell)
        assert drawn.setdefault(seed, ran.value) == ran.value
        said.append(marked(ran.lines[-1]))
    assert drawn[3] != drawn[4]
    assert said == [
        "train, run 1: checkpoint ######## taken under seed 3; drew from python (2 words)",
        "train, run 2: checkpoint ######## taken under seed 4; drew from python (2 words)",
        "train, run 3: rewound to ########; same draws",
    ]
    assert [run.seed for run in nbseed.runs("train")] == [3, 4, 3]


def test_a_cell_that_seeds_itself_keeps_its_checkpoint(notebook: Notebook) -> None:
    notebook.ok("import random")
    cell = "%%rngcheckpoint train\nbefore = random.random()\n%seed 7\nafter = random.random()"
    notebook.ok("%seed 3")
    drawn = []
    for _ in range(3):
        ran = notebook.ok(cell)
        drawn.append((notebook.ns["before"], notebook.ns["after"]))
    assert drawn[0] == drawn[1] == drawn[2]
    assert marked(ran.lines[-1]) == "train, run 3: rewound to ########; same draws"
    assert "note" not in ran.out


def test_a_cell_that_seeds_itself_by_hand_repeats(notebook: Notebook) -> None:
    notebook.ok("import random, numpy as np")
    cell = (
        "%%rngcheckpoint train\nfirst = random.random()\nrandom.seed(1); np.random.seed(1)\n"
        "first, np.random.rand(), random.random()"
    )
    assert notebook.ok(cell).value == notebook.ok(cell).value


def test_a_named_checkpoint_outlives_an_edit_of_the_text(notebook: Notebook) -> None:
    notebook.ok("import random")
    first = notebook.ok("%%rngcheckpoint train\nrandom.random()").value
    ran = notebook.ok("%%rngcheckpoint train\nx = random.random()\nx")
    assert ran.value == first
    assert marked(ran.lines[-1]) == "train, run 2: rewound to ########; same draws"


def test_a_checkpoint_by_identity_outlives_an_edit_of_the_text(notebook: Notebook) -> None:
    notebook.ok("import random")
    first = notebook.ok("%%rngcheckpoint\nrandom.random()", "id-1").value
    ran = notebook.ok("%%rngcheckpoint\nx = random.random()\nx", "id-1")
    assert ran.value == first
    assert marked(ran.lines[-1]) == "cell-id-1, run 2: rewound to ########; same draws"


def test_a_checkpoint_by_text_becomes_another_and_the_report_says_so(notebook: Notebook) -> None:
    notebook.ok("import random\nrandom.seed(3)")
    note = (
        "  note: this cell is known by its text alone: an edit makes a new "
        "checkpoint; %%rngcheckpoint NAME keeps it"
    )
    first = notebook.ok("%%rngcheckpoint\nrandom.random()")
    again = notebook.ok("%%rngcheckpoint\nrandom.random()")
    edited = notebook.ok("%%rngcheckpoint\nrandom.random() # edited")
    taken = (
        "cell-########, run 1: checkpoint ######## taken, no seed in force; "
        "drew from python (2 words)"
    )
    assert [marked(line) for line in first.lines[-2:]] == [taken, note]
    assert marked(again.lines[-1]) == "cell-########, run 2: rewound to ########; same draws"
    assert [marked(line) for line in edited.lines[-2:]] == [taken, note]
    assert again.value == first.value != edited.value


def test_two_cells_with_the_same_text_and_no_identity_share_a_checkpoint(
    notebook: Notebook,
) -> None:
    notebook.ok("import random")
    cell = "%%rngcheckpoint\nrandom.random()"
    assert notebook.ok(cell).value == notebook.ok(cell).value
    assert notebook.ok(cell, "a").value == notebook.ok(cell, "a").value
    assert notebook.ok(cell, "b").value != notebook.ok(cell, "a").value


def test_a_reset_takes_the_snapshot_anew(notebook: Notebook) -> None:
    notebook.ok("import random")
    cell = "%%rngcheckpoint train\nrandom.random()"
    first = notebook.ok(cell).value
    ran = notebook.ok(cell.replace("train", "train --reset"))
    assert ran.value != first
    assert "run 2: checkpoint " in ran.out
    assert notebook.ok(cell).value == ran.value


def test_an_isolated_cell_leaves_the_generators_as_they_were(notebook: Notebook) -> None:
    notebook.ok(ALL)
    cell = f"%%rngcheckpoint train --isolate\n{DRAW_ALL}"
    before = nbseed.fingerprints()
    notebook.ok(cell)
    first = notebook.ns["result"]
    assert nbseed.fingerprints() == before
    notebook.ok(DRAW_ALL)
    assert notebook.ns["result"] == first
    moved = nbseed.fingerprints()
    notebook.ok(cell)
    assert notebook.ns["result"] == first
    assert nbseed.fingerprints() == moved
    notebook.run(f"{cell}\n1 / 0")
    assert nbseed.fingerprints() == moved


@pytest.mark.parametrize("extra", ["", "import asyncio\nawait asyncio.sleep(0)\n"])
def test_runs_repeats_the_body_from_one_snapshot(notebook: Notebook, extra: str) -> None:
    notebook.ok("import random\ndrawn = []")
    ran = notebook.ok(
        f"%%rngcheckpoint train --runs 3\n{extra}drawn.append(random.random())\ndrawn[-1]"
    )
    assert len(notebook.ns["drawn"]) == 3
    assert len(set(notebook.ns["drawn"])) == 1
    assert ran.value == notebook.ns["drawn"][0]
    assert ran.out.count(f": {ran.value!r}\n") == 3
    assert [marked(line) for line in ran.lines if "run " in line] == [
        "train, run 1: checkpoint ######## taken, no seed in force; drew from python (2 words)",
        "train, run 2: rewound to ########; same draws",
        "train, run 3: rewound to ########; same draws",
    ]


@pytest.mark.parametrize("line", ["--runs {runs}", "--runs {names[1]}", "--runs $line"])
def test_expressions_are_those_of_the_notebook(notebook: Notebook, line: str) -> None:
    notebook.ok("runs = line = 3; names = [1, 3]; count = 0")
    notebook.ok(f"%%rngcheckpoint train {line}\ncount += 1")
    assert notebook.ns["count"] == 3


def test_a_new_snapshot_for_several_runs_is_taken_once(notebook: Notebook) -> None:
    notebook.ok("import random\ndrawn = []")
    cell = "%%rngcheckpoint train --reset --runs 2\ndrawn.append(random.random())"
    notebook.ok(cell)
    notebook.ok(cell)
    one, two, three, four = notebook.ns["drawn"]
    assert one == two != three == four


def test_an_error_in_the_second_run_leaves_the_first_as_it_was(notebook: Notebook) -> None:
    notebook.ok("count = 0")
    notebook.run("%%rngcheckpoint train --runs 3\ncount += 1\nif count == 2: 1 / 0")
    assert [run.status for run in nbseed.runs("train")] == ["ok", "error"]
    assert notebook.ns["count"] == 2


@pytest.mark.parametrize(
    "body",
    [
        "for i in range(3):\n    a = random.random()\n    b = a * 2",
        "for i in range(3):\n    a, b = (x := random.random()), x * 2",
        "def f():\n    a = random.random()\n    b = a\n    b += a\nfor i in range(3):\n    f()",
    ],
)
def test_tracked_variables_are_recorded_at_each_assignment(notebook: Notebook, body: str) -> None:
    notebook.ok("import random")
    cell = f"%%rngcheckpoint train --track a,b\n{body}"
    notebook.ok(cell)
    ran = notebook.run(cell)
    one, two = nbseed.runs("train")
    assert one.losses["a"].dtype == np.float64
    assert len(one.losses["a"]) == 3
    assert one.losses["a"].tolist() == two.losses["a"].tolist()
    assert one.losses["b"][-1] == one.losses["a"][-1] * 2
    assert "a bit-identical (3 steps); b bit-identical (" in ran.out


def test_losses_are_recorded_and_nothing_stays_patched(notebook: Notebook) -> None:
    notebook.ok("import torch\nw = torch.zeros(1, requires_grad=True)")
    cell = (
        "%%rngcheckpoint train\nkept = []\nfor i in range(5):\n"
        "    loss = (w + torch.rand(1)).sum()\n    loss.backward()\n    kept.append(loss.item())"
    )
    notebook.ok(cell)
    assert torch.Tensor.backward is BACKWARD
    ran = notebook.ok(cell)
    one, two = nbseed.runs("train")
    assert one.losses["loss"].tolist() == two.losses["loss"].tolist() == notebook.ns["kept"]
    assert [marked(line) for line in ran.lines] == [
        "train, run 2: rewound to ########; same draws; losses bit-identical (5 steps)"
    ]


def test_the_stale_checkpoint_trap_is_named(notebook: Notebook) -> None:
    notebook.ok("import random")
    cell = "%%rngcheckpoint train\nrandom.random()"
    note = (
        "  note: the cells before this one now leave another state than when its checkpoint was "
        "taken; --reset takes it anew"
    )
    notebook.ok("%seed 3")
    notebook.ok(cell)
    notebook.ok("%seed 3")
    assert note not in notebook.ok(cell).lines
    notebook.ok("%seed 3\nx = random.random(), random.random()")
    assert notebook.ok(cell).lines[-1] == note


def test_a_difference_is_named(notebook: Notebook) -> None:
    notebook.ok("import random, numpy as np\nmore = False")
    cell = (
        "%%rngcheckpoint train --track a\nfor i in range(4):\n    a = float(i)\n"
        "    if more and i == 2:\n        a = 7.5\n        np.random.rand()"
    )
    notebook.ok(cell)
    notebook.ns["more"] = True
    assert marked(notebook.ok(cell).lines[0]) == (
        "train, run 2: rewound to ########; other draws: numpy 2 words, run 1 nothing; "
        "a parts at step 3 (3.0, now 7.5); why: more is True, was False"
    )


# -- entropy that no seed controls -----------------------------------------------------------------

UNSEEDED = {
    "np.random.default_rng()": "np.random.default_rng() without a seed (line 1)",
    "np.random.default_rng(\n    None\n)": "np.random.default_rng() without a seed (line 1)",
    "x = 1\n[np.random.RandomState() for _ in range(2)]": (
        "np.random.RandomState() without a seed (line 2)"
    ),
    "np.random.seed()": "np.random.seed() without a seed (line 1)",
    "np.random.SeedSequence()": "np.random.SeedSequence() without a seed (line 1)",
    "np.random.PCG64()": "np.random.PCG64() without a seed (line 1)",
    "random.seed()": "random.seed() without a seed (line 1)",
    "random.Random()": "random.Random() without a seed (line 1)",
    "secrets.token_hex(4)": "secrets.token_hex() without a seed (line 1)",
    "os.urandom(4)": "os.urandom() without a seed (line 1)",
    "os.getrandom(4)": "os.getrandom() without a seed (line 1)",
    "uuid.uuid1()": "uuid.uuid1() without a seed (line 1)",
    "x = 1\n\nuuid.uuid4()": "uuid.uuid4() without a seed (line 3)",
    "torch.seed()": "torch.seed() without a seed (line 1)",
    "made()": "np.random.default_rng() without a seed (line 1, in made)",
    "%%rngcheckpoint train\nx = 1\nos.urandom(4)": "os.urandom() without a seed (line 3)",
    "%%seed 7\nos.urandom(4)": "os.urandom() without a seed (line 2)",
}
LIBRARIES = """
import logging, os, random, secrets, tempfile, uuid, numpy as np, torch
def made(seed=None):
    return np.random.default_rng(seed)
"""


@pytest.mark.parametrize("cell", UNSEEDED)
def test_under_strict_entropy_that_no_seed_controls_is_an_error(
    notebook: Notebook, cell: str
) -> None:
    notebook.ok(LIBRARIES)
    notebook.ok("%seed 3 --strict")
    before = nbseed.fingerprints()
    ran = notebook.run(cell)
    assert isinstance(ran.error, EntropyError)
    assert str(ran.error) == f"{UNSEEDED[cell]}: no seed controls what it gives"
    now = nbseed.fingerprints()
    if cell == "torch.seed()":  # it can be seen only after torch has re-seeded its own generator
        del now["torch.cpu"], before["torch.cpu"]
    assert now == before


@pytest.mark.parametrize(
    "cell",
    [
        "np.random.default_rng(3), np.random.RandomState(3), np.random.PCG64(3)",
        "np.random.Generator(np.random.Philox(key=3)), np.random.SeedSequence(3).spawn(2)",
        "np.random.seed(3); random.seed(3); torch.manual_seed(3); random.Random(3)",
        "made(3)",
        "np.random.rand(), random.random(), torch.rand(1)",
        "[b for b in torch.utils.data.DataLoader(torch.arange(8), 4, shuffle=True)]",
        "tempfile.TemporaryFile().close()",
        "logging.getLogger('x').debug('y')",
        "%seed 4\nos.urandom(4)",
        "%rng",
        "%seed --new",
        "%%rngcheckpoint train\nrandom.random()",
    ],
)
def test_under_strict_what_a_seed_controls_goes_on(notebook: Notebook, cell: str) -> None:
    notebook.ok(LIBRARIES)
    notebook.ok("%seed 3 --strict")
    notebook.ok(cell)


def test_strict_begins_in_its_own_cell_and_ends_with_the_next_seed(notebook: Notebook) -> None:
    notebook.ok(LIBRARIES)
    ran = notebook.run("os.urandom(4)\n%seed 3 --strict\nos.urandom(4)")
    assert str(ran.error) == (
        "os.urandom() without a seed (line 3): no seed controls what it gives"
    )
    assert notebook.ok("%seed").lines == [
        "seed 3 in force; entropy that no seed controls is an error"
    ]
    notebook.ok("%seed 3")
    assert len(notebook.ok("os.urandom(4)").value) == 4


def test_an_error_of_strict_is_one_that_the_cell_may_catch(notebook: Notebook) -> None:
    notebook.ok(LIBRARIES)
    notebook.ok("%seed 3 --strict")
    notebook.ok(
        "import nbseed\ntry:\n    os.urandom(4)\nexcept nbseed.NbseedError as error:\n"
        "    said = str(error)"
    )
    assert notebook.ns["said"].startswith("os.urandom() without a seed (line 3)")


def test_a_run_that_strict_ended_is_kept(notebook: Notebook) -> None:
    notebook.ok(LIBRARIES)
    notebook.ok("%seed 3 --strict")
    ran = notebook.run("%%rngcheckpoint train\nx = random.random()\nos.urandom(4)")
    assert marked(ran.lines[-1]) == (
        "train, run 1: checkpoint ######## taken under seed 3; drew from python (2 words); ended "
        "by EntropyError: os.urandom() without a seed (line 3): no seed controls what it gives"
    )
    (run,) = nbseed.runs("train")
    assert [(call.kind, call.what) for call in run.observed.calls] == [("entropy", "os.urandom()")]


PINNED = "[np.random.default_rng().random(), np.random.RandomState().rand(), made().random()]"


def test_pinned_entropy_repeats_from_the_seed_and_in_a_checkpoint(notebook: Notebook) -> None:
    notebook.ok(LIBRARIES)
    said = notebook.ok("%seed 3 --pin-entropy").lines
    assert said == ["seed 3: python, numpy, numpy.entropy, torch.cpu seeded"]
    assert notebook.ok("%seed").lines == ["seed 3 in force; unseeded NumPy generators fed from it"]
    first, second = notebook.ok(PINNED).value, notebook.ok(PINNED).value
    assert len({*first, *second}) == 6
    assert notebook.ok(f"%seed 3 --pin-entropy\n{PINNED}").value == first
    assert notebook.ok(f"%seed 4 --pin-entropy\n{PINNED}").value != first
    cell = f"%%rngcheckpoint train\n{PINNED}"
    assert notebook.ok(cell).value == notebook.ok(cell).value != first
    assert notebook.ok(f"%%seed 3\n{PINNED}").value == first
    notebook.ok("%seed 3")
    assert notebook.ok(PINNED).value != notebook.ok(PINNED).value


def test_pinned_entropy_feeds_numpys_generators_alone(notebook: Notebook) -> None:
    notebook.ok(LIBRARIES)
    others = "[random.Random().random(), os.urandom(8), secrets.token_hex(8), uuid.uuid4()]"
    values = [notebook.ok(f"%seed 3 --pin-entropy\n{others}").value for _ in range(2)]
    assert all(one != other for one, other in zip(*values, strict=True))


def test_a_seed_with_pinned_entropy_draws_as_one_without(notebook: Notebook) -> None:
    expected = idiom(3)
    notebook.ok("%seed 3 --pin-entropy\nimport numpy as np\nrng = np.random.default_rng()")
    assert draws() == expected


def test_strict_and_pinned_entropy_go_together(notebook: Notebook) -> None:
    notebook.ok(LIBRARIES)
    notebook.ok("%seed 3 --strict --pin-entropy")
    assert len(notebook.ok(PINNED).value) == 3
    assert isinstance(notebook.run("os.urandom(4)").error, EntropyError)


# -- variables and operators -----------------------------------------------------------------------


def test_carried_variables_are_put_back_before_each_run(notebook: Notebook) -> None:
    notebook.ok(
        "import torch\nmodel = torch.nn.Linear(2, 1)\n"
        "optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)\ncount = 0"
    )
    cell = (
        "%%rngcheckpoint train --with model,optimizer,count --runs 2\n"
        "count += 1\nfor _ in range(3):\n    optimizer.zero_grad()\n"
        "    loss = model(torch.rand(4, 2)).square().mean()\n    loss.backward()\n"
        "    optimizer.step()"
    )
    model = notebook.ns["model"]
    first = notebook.ok(cell)
    again = notebook.ok(cell)
    assert [re.sub(r"\([^()]*B\)", "(...)", marked(line)) for line in first.lines] == [
        (
            "train, run 1: checkpoint ######## taken, no seed in force; "
            "drew from torch.cpu (24 words); 3 losses"
        ),
        "  note: kept with it: model, optimizer, count (...)",
        "train, run 2: rewound to ########; same draws; losses bit-identical (3 steps)",
    ]
    assert [marked(line) for line in again.lines] == [
        f"train, run {number}: rewound to ########; same draws; losses bit-identical (3 steps)"
        for number in (3, 4)
    ]
    assert notebook.ns["model"] is model
    assert notebook.ns["count"] == 1


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ("modl", "--with modl: there is no variable of that name; there are: model"),
        ("model,np", "--with np: a module cannot be copied; import it in the cell"),
    ],
)
def test_what_cannot_be_carried_is_said_and_the_cell_does_not_run(
    notebook: Notebook, names: str, said: str
) -> None:
    notebook.ok("import numpy as np\nmodel = [1]\nran = False")
    before = nbseed.fingerprints()
    ran = notebook.run(f"%%rngcheckpoint train --with {names}\nran = True")
    assert isinstance(ran.error, UsageError)
    assert ran.err.startswith(f"UsageError: {said}")
    assert len(ran.err.splitlines()) == 1
    assert (notebook.ns["ran"], nbseed.runs()) == (False, [])
    assert nbseed.fingerprints() == before


def test_a_probe_names_operators_without_a_deterministic_kernel(notebook: Notebook) -> None:
    notebook.ok("import torch\nstep = 0\nfrom torch.nn.functional import *")
    cell = (
        "%%rngcheckpoint train --probe\n"
        "pooled, where = max_pool2d(torch.rand(1, 1, 4, 4), 2, return_indices=True)\n"
        "x = max_unpool2d(pooled, where, 2) + step"
    )
    notebook.ok(cell)
    assert torch.are_deterministic_algorithms_enabled() is False
    notebook.ns["step"] = 1
    assert marked(notebook.ok(cell).lines[-1]) == (
        "train, run 2: rewound to ########; same draws; x differs; why: step is 1, was 0; "
        "1 more in %rng why"
    )
    found = notebook.ok("%rng why").value.explanation.causes
    assert found[1].said == "max_unpooling2d_forward_out has no deterministic kernel"
    assert [run.observed.operators for run in nbseed.runs("train")] == [
        ("max_unpooling2d_forward_out",)
    ] * 2


def test_variables_are_not_compared_without_a_budget(notebook: Notebook) -> None:
    notebook.ok("%config NBSeed.compare_seconds = 0")
    notebook.ok("step = 0")
    notebook.ok("%%rngcheckpoint train\nx = step")
    notebook.ns["step"] = 1
    assert marked(notebook.ok("%%rngcheckpoint train\nx = step").lines[-1]) == (
        "train, run 2: rewound to ########; no known generator moved"
    )
    observed = nbseed.runs("train")[1].observed
    assert observed.met.left_out == {"step": "no time is given for it"}
    assert observed.left.left_out == {"x": "no time is given for it"}


# -- a cell is still a plain cell ------------------------------------------------------------------


@pytest.mark.parametrize("head", ["%%rngcheckpoint train", "%%seed 3"])
@pytest.mark.parametrize(
    ("body", "value", "shown"),
    [
        ("5", 5, True),
        ("5;", None, False),
        ("5 # five", 5, True),
        ("x = 5", None, False),
        ("None", None, False),
        ("x = 5\n\n\nx", 5, True),
        ("x = 5; x", 5, True),
        ("import asyncio\nawait asyncio.sleep(0, 5)", 5, True),
        ("import asyncio\nawait asyncio.sleep(0, 5);", None, False),
    ],
)
def test_the_last_expression_is_displayed_as_ever(
    notebook: Notebook, head: str, body: str, value: object, shown: bool
) -> None:
    ran = notebook.ok(f"{head}\n{body}")
    plain = notebook.ok(body)
    assert ran.value == plain.value == value
    assert ("Out[" in ran.out) is ("Out[" in plain.out) is shown


def test_a_trailing_semicolon_silences_every_run(notebook: Notebook) -> None:
    ran = notebook.ok("%%rngcheckpoint train --runs 3\n5;")
    assert "Out[" not in ran.out
    assert ran.value is None


@pytest.mark.parametrize(
    "head", ["%%rngcheckpoint train", "%%seed 3", "%%rngcheckpoint t --runs 2"]
)
@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("1 / 0", 2),
        ("\n\n1 / 0", 4),
        ("x = '''\n\n'''\n1 / 0", 5),
        ("%xmode Context\n1 / 0", 3),
        ("def f():\n    1 / 0\nf()", 3),
        ("import asyncio\nawait asyncio.sleep(0)\n1 / 0", 4),
    ],
)
def test_an_error_has_one_traceback_with_the_line_of_the_cell(
    notebook: Notebook, head: str, body: str, line: int
) -> None:
    ran = notebook.run(f"{head}\n{body}")
    assert isinstance(ran.error, ZeroDivisionError)
    trace = ran.error.__traceback__
    assert trace is not None
    while trace.tb_next is not None:
        trace = trace.tb_next
    assert trace.tb_lineno == line
    assert ran.out.count("Traceback (most recent call last)") == 1
    assert "nbseed" not in ran.out
    assert f"----> {line} " in ran.out.replace("-> ", "-> ")


def test_a_syntax_error_has_the_line_of_the_cell_and_is_no_run(notebook: Notebook) -> None:
    ran = notebook.run("%%rngcheckpoint train\nx = 1\nx = = 2")
    assert isinstance(ran.error, SyntaxError)
    assert ran.error.lineno == 3
    assert ran.out.count("SyntaxError") == 1
    assert nbseed.runs() == []
    assert notebook.ok("%%rngcheckpoint train\nx = 2").out.startswith("train, run 1: ")


def test_a_run_that_raises_is_kept_and_the_next_rewinds(notebook: Notebook) -> None:
    notebook.ok("import random\nwrong = True")
    cell = "%%rngcheckpoint train\nx = random.random()\nif wrong: raise ValueError('bad  \\n one')"
    taken = "train, run 1: checkpoint ######## taken, no seed in force; drew from python (2 words)"
    said, drawn = [], []
    for notebook.ns["wrong"] in (True, True, False):
        said.append(marked(notebook.run(cell).lines[-1]))
        drawn.append(notebook.ns["x"])
    assert drawn[0] == drawn[1] == drawn[2]
    assert said == [
        f"{taken}; ended by ValueError: bad one",
        "train, run 2: rewound to ########; ended by ValueError: bad one, as run 1; same draws",
        "train, run 3: rewound to ########; run 1 was ended by ValueError: bad one; same draws",
    ]
    assert [run.status for run in nbseed.runs("train")] == ["error", "error", "ok"]
    assert nbseed.runs("train")[0].error == "ValueError: bad one"


def test_an_interrupted_run_is_kept_and_the_next_rewinds(notebook: Notebook) -> None:
    notebook.ok("import random, signal\nstop = True")
    cell = "%%rngcheckpoint train\nx = random.random()\nif stop: signal.raise_signal(signal.SIGINT)"
    ran = notebook.run(cell)
    first = notebook.ns["x"]
    assert isinstance(ran.error, KeyboardInterrupt)
    assert marked(ran.lines[-1]) == (
        "train, run 1: checkpoint ######## taken, no seed in force; drew from python (2 words); "
        "interrupted"
    )
    notebook.ns["stop"] = False
    notebook.ok(cell)
    assert notebook.ns["x"] == first
    assert [run.status for run in nbseed.runs("train")] == ["interrupted", "ok"]


@pytest.mark.parametrize("head", ["", "%%rngcheckpoint train\n", "%%rngcheckpoint t --runs 3\n"])
def test_the_hooks_fire_once_a_cell(shell: InteractiveShell, notebook: Notebook, head: str) -> None:
    fired = []

    def before(info: Any) -> None:
        fired.append("pre")

    def after(result: Any) -> None:
        fired.append("post")

    shell.events.register("pre_run_cell", before)
    shell.events.register("post_run_cell", after)
    try:
        count = shell.execution_count
        notebook.ok(f"{head}x = 1")
    finally:
        shell.events.unregister("pre_run_cell", before)
        shell.events.unregister("post_run_cell", after)
    assert fired == ["pre", "post"]
    assert shell.execution_count == count + 1


def test_the_history_holds_what_the_user_typed(shell: InteractiveShell, notebook: Notebook) -> None:
    notebook.ok("%%rngcheckpoint train\nx = 1")
    assert shell.history_manager is not None
    assert shell.history_manager.input_hist_raw[-1] == "%%rngcheckpoint train\nx = 1"


@pytest.mark.parametrize("cell", ["", "   ", "\n\n"])
def test_an_empty_cell_is_nothing(notebook: Notebook, cell: str) -> None:
    notebook.ok("import random")
    notebook.ok("%%rngcheckpoint train\nrandom.random()")
    assert notebook.ok(cell).out == ""
    assert notebook.ok("%%rngcheckpoint train\nrandom.random()").out.endswith("same draws\n")


def test_a_cell_within_a_cell_has_its_own_checkpoint(notebook: Notebook) -> None:
    notebook.ok("import random\ninner = '%%rngcheckpoint inner\\nx = random.random()'")
    outer = (
        "%%rngcheckpoint outer\ny = random.random()\nget_ipython().run_cell(inner)\n"
        "z = random.random()"
    )
    drawn = []
    for _ in range(2):
        notebook.ok(outer)
        drawn.append([notebook.ns[name] for name in "xyz"])
    assert drawn[0] == drawn[1]
    assert [len(nbseed.runs(name)) for name in ("inner", "outer")] == [2, 2]


def test_the_neighbouring_magics_still_work(notebook: Notebook) -> None:
    notebook.ok("%%capture said\nprint('x = 1')\n")
    assert notebook.ns["said"].stdout == "x = 1\n"
    assert notebook.ok("%%writefile /dev/null\nx").lines == ["Overwriting /dev/null"]
    assert "per loop" in notebook.ok("%timeit -n 1 -r 1 pass").out
    assert notebook.ok("%%bash\necho x: 3").lines == ["x: 3"]


# -- what never happens ----------------------------------------------------------------------------


class BrokenError(Exception):
    pass


def broken(*args: object, **kwargs: object) -> Any:
    raise BrokenError("by the test")


FAULTS = {
    ("nbseed.checkpoints.snapshot", "%%rngcheckpoint train"): "rngcheckpoint",
    ("nbseed.recording.losses.begin", "%%rngcheckpoint train"): "rngcheckpoint",
    ("nbseed.recording.watch.begin", "%%rngcheckpoint train"): "rngcheckpoint",
    ("nbseed.recording.content.read", "%%rngcheckpoint train"): "rngcheckpoint",
    ("nbseed.recording.reached", "%%rngcheckpoint train"): "rngcheckpoint",
    ("nbseed.checkpoints.rewinding.carry", "%%rngcheckpoint train --with w"): "rngcheckpoint",
    ("nbseed.cells.body_of", "%%rngcheckpoint train"): "rngcheckpoint",
    ("nbseed.recording.signs.signs", "%%rngcheckpoint train"): "the end of the cell",
    ("nbseed.recording.count", "%%rngcheckpoint train"): "the end of the cell",
    ("nbseed.report.text", "%%rngcheckpoint train"): "the end of the cell",
    ("nbseed.seeding.snapshot", "%%seed 3"): "seed",
    ("nbseed.seeding.seed_now", "%%seed 3"): "seed",
}


@pytest.mark.parametrize(("place", "head"), FAULTS)
def test_a_fault_is_one_line_and_the_cell_runs_on(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch, place: str, head: str
) -> None:
    notebook.ok("import torch\nw = torch.ones(1, requires_grad=True)")
    with monkeypatch.context() as patched:
        patched.setattr(place, broken)
        ran = notebook.run(f"{head}\nw.sum().backward()\nx = 6 * 7\nx")
    assert (ran.error, ran.value) == (None, 42)
    assert ran.err == (
        f"nbseed: {FAULTS[place, head]} failed (BrokenError: by the test); "
        "the cell runs without it\n"
    )
    assert torch.Tensor.backward is BACKWARD
    assert (losses._recorders, watch._watches) == ([], [])
    after = notebook.ok("%%rngcheckpoint other\nx = 1")
    assert marked(after.lines[0]) == (
        "other, run 1: checkpoint ######## taken, no seed in force; no known generator moved"
    )


def test_a_fault_at_the_beginning_of_a_cell_is_one_line_and_the_cell_runs_on(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook.ok("%seed 3 --each-cell", "a")
    with monkeypatch.context() as patched:
        patched.setattr("nbseed.seeding.derive", broken)
        ran = notebook.run("%%rngcheckpoint train\n6 * 7", "b")
    assert (ran.error, ran.value) == (None, 42)
    assert ran.err == (
        "nbseed: the beginning of the cell failed (BrokenError: by the test); "
        "the cell runs without it\n"
    )


@pytest.mark.parametrize("place", ["nbseed.cells.unfold", "nbseed.cells.checkpoint_arguments"])
def test_a_fault_in_the_rewrite_is_one_line_and_the_cell_runs_on(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(place, broken)
        ran = notebook.run("x = 6 * 7\nx")
    assert (ran.error, ran.value) == (None, 42)
    said = (
        "nbseed: the rewrite of the cell failed (BrokenError: by the test); "
        "the cell runs without it"
    )
    assert set(ran.err.splitlines()) == {said}
    notebook.ok("%%rngcheckpoint train --runs 2\nx = 1")
    assert len(nbseed.runs("train")) == 2


def test_no_code_of_the_users_is_called_by_looking(notebook: Notebook) -> None:
    asked = []

    class Proxy:
        def __getattr__(self, name: str) -> object:
            asked.append(name)
            raise AttributeError(name)

    notebook.ns["proxy"] = Proxy()
    for _ in range(2):
        notebook.ok("%%rngcheckpoint train\nx = [proxy]")
    assert asked == []


def test_a_function_that_asks_for_the_shell_does_not_lead_into_it(notebook: Notebook) -> None:
    notebook.ok("def ask():\n    return get_ipython().config")
    table = notebook.ok("%rng").value
    assert [row[0] for row in table.rows] == ["python", "numpy", "torch.cpu", "all"]
    assert table.below == ()


def test_the_report_can_be_silenced(notebook: Notebook) -> None:
    notebook.ok("%config NBSeed.report = False")
    assert notebook.ok("%%rngcheckpoint train\nx = 1").out == ""
    assert len(nbseed.runs("train")) == 1
    notebook.ok("%config NBSeed.report = True")
    assert notebook.ok("%%rngcheckpoint train\nx = 1").out.startswith("train, run 2: ")


def test_the_store_is_bounded_by_config(notebook: Notebook) -> None:
    notebook.ok("%config NBSeed.max_runs = 3")
    notebook.ok("%config NBSeed.max_checkpoints = 2")
    for _ in range(6):
        notebook.ok("%%rngcheckpoint train\nx = 1")
    assert [run.number for run in nbseed.runs("train")] == [1, 5, 6]
    notebook.ok("%%rngcheckpoint two\nx = 1")
    ran = notebook.ok("%%rngcheckpoint three\nx = 1")
    assert ran.lines[-1] == "  note: the checkpoint of train was dropped: 2 are kept"


def test_a_run_that_records_imports_no_numpy() -> None:
    code = """
    import sys
    from IPython.core.interactiveshell import InteractiveShell
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "nbseed")
    for _ in range(2):
        shell.run_cell("%%rngcheckpoint a --track x\\nimport random\\nx = random.random()")
    print(sorted({"numpy", "torch"} & set(sys.modules)))
    import nbseed
    print([run.losses["x"].dtype.name for run in nbseed.runs("a")])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    first, second, *rest = done.stdout.splitlines()
    assert "run 1" in first
    assert second.endswith("same draws; x bit-identical (1 step)")
    assert rest == ["[]", "['float64', 'float64']"]
