"""Load and unload: the shell is as it was, and looking costs the user nothing."""

from __future__ import annotations

import multiprocessing.process
import os
import random
import re
import subprocess
import sys
import textwrap
import threading
import uuid
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell
from shells import Notebook, loaded, started

import nbseed
from nbseed import determinism, extension, generators, losses, seeding, watch


@pytest.fixture(scope="module")
def shell() -> Iterator[InteractiveShell]:
    with started() as shell:
        notebook = Notebook(shell)  # IPython itself makes some of its parts at their first use
        for cell in ("%load_ext nbseed", "%config NBSeed.report = True", "%unload_ext nbseed"):
            notebook.ok(cell)
        yield shell


@pytest.fixture
def before(shell: InteractiveShell) -> Iterator[dict[str, Any]]:
    """The shell's traces without the extension; afterwards it is without it again."""
    names = set(shell.user_ns)
    yield traces(shell)
    nbseed.unload_ipython_extension(shell)
    shell.extension_manager.loaded.discard("nbseed")
    shell.config.pop("NBSeed", None)  # what %config has set stays with the shell
    for name in set(shell.user_ns) - names:
        del shell.user_ns[name]


@pytest.fixture
def notebook(shell: InteractiveShell) -> Iterator[Notebook]:
    with loaded(shell) as notebook:
        yield notebook


def traces(shell: InteractiveShell) -> dict[str, Any]:
    """All that an extension could leave behind in a shell and in the process."""
    return {
        "instances": dict(shell.magics_manager.registry),
        "line magics": dict(shell.magics_manager.magics["line"]),
        "cell magics": dict(shell.magics_manager.magics["cell"]),
        "configurables": list(map(id, shell.configurables)),
        "callbacks": {name: list(calls) for name, calls in shell.events.callbacks.items()},
        "transformers before": list(shell.input_transformers_post),
        "cleanup transforms": list(shell.input_transformer_manager.cleanup_transforms),
        "tree transformers": list(shell.ast_transformers),
        "matchers": list(shell.Completer.custom_matchers),
        "attributes": set(vars(shell)),
        "variables": {name for name in shell.user_ns if not _of_history(name)},
        "hidden variables": {name for name in shell.user_ns_hidden if not _of_history(name)},
        "display hook": sys.displayhook,
        "finders": list(sys.meta_path),
        "path hooks": list(sys.path_hooks),
        **{f"{owner.__name__}.{name}": vars(owner)[name] for owner, name in PATCHED},
        "warnings": warnings.showwarning,
        "filters of a probe": [f for f in warnings.filters if "deterministic" in str(f[1])],
        "switches": determinism.switches(),
        "deterministic": (
            torch.are_deterministic_algorithms_enabled(),
            torch.backends.cudnn.deterministic,
            torch.backends.cudnn.benchmark,
        ),
    }


PATCHED = (  # whatever a checkpointed cell may wrap while it runs
    (torch.Tensor, "backward"),
    (torch.amp.GradScaler, "scale"),
    (random, "_urandom"),
    (random, "seed"),
    (random.Random, "seed"),
    (os, "urandom"),
    (os, "getrandom"),
    (uuid, "_generate_time_safe"),
    (threading.Thread, "start"),
    (np.random.bit_generator, "randbits"),
    (np.random, "seed"),
    (np.random.mtrand, "seed"),
    (torch.cuda, "manual_seed_all"),
    (torch.cuda.random, "manual_seed_all"),
    (multiprocessing.process.BaseProcess, "start"),
    (subprocess.Popen, "__init__"),
)

_of_history = re.compile(r"_{1,3}|_i{1,3}|_i?\d+").fullmatch


def load(shell: InteractiveShell) -> None:
    assert shell.run_line_magic("load_ext", "nbseed") is None


def unload(shell: InteractiveShell) -> None:
    assert shell.run_line_magic("unload_ext", "nbseed") is None


USES = {
    "nothing": [],
    "a seed": ["%seed 3"],
    "the switches": ["%seed 3 --deterministic"],
    "a seed for each cell": ["%seed 3 --each-cell", "x = 1"],
    "a checkpoint": ["%%rngcheckpoint train\nx = 1"],
    "losses": [
        "import torch",
        "%%rngcheckpoint train\ntorch.ones(1, requires_grad=True).sum().backward()",
    ],
    "an error": ["%%rngcheckpoint train --track x\nx = 1 / 0"],
    "a syntax error": ["%%rngcheckpoint train\nx = = 1"],
    "an interrupt": ["%%seed 3\nraise KeyboardInterrupt"],
    "an await": ["%%rngcheckpoint train\nimport asyncio\nawait asyncio.sleep(0)"],
    "a setting": ["%config NBSeed.report = False"],
    "strictness": ["%seed 3 --strict", "import os\nx = os.urandom(4)", "x = 1"],
    "pinned entropy": [
        "%seed 3 --pin-entropy",
        "import numpy\nx = numpy.random.default_rng().random()",
    ],
    "both at once": ["%seed 3 --strict --pin-entropy\nimport os\nx = os.urandom(4)"],
    "entropy": ["%%rngcheckpoint train\nimport os\nx = os.urandom(4)"],
    "a carried variable": ["x = [1]", "%%rngcheckpoint train --with x\nx.append(1)"],
    "a refused variable": ["%%rngcheckpoint train --with x\ny = 1"],
    "a probe": ["import torch", "%%rngcheckpoint train --probe\nx = 1"],
    "a probe that fails": ["import torch", "%%rngcheckpoint train --probe\nx = 1 / 0"],
    "the views": ["%rng", "%%rngcheckpoint train\nx = 1", "%rng why"],
}


@pytest.mark.parametrize("cells", USES.values(), ids=USES.keys())
def test_unload_leaves_the_shell_as_it_was(
    shell: InteractiveShell, before: dict[str, Any], cells: list[str]
) -> None:
    load(shell)
    assert traces(shell) != before
    notebook = Notebook(shell)
    for cell in cells:
        notebook.run(cell)
    unload(shell)
    for name in {"x", "asyncio", "torch", "os", "numpy"} & set(shell.user_ns):
        del shell.user_ns[name]
    assert traces(shell) == before
    assert nbseed.runs() == []
    assert seeding.in_force() is None


def test_a_load_adds_its_magics_and_one_of_each_part(
    shell: InteractiveShell, before: dict[str, Any]
) -> None:
    load(shell)
    after = traces(shell)
    unload(shell)
    added = {
        kind: sorted(after[kind].keys() - before[kind].keys())
        for kind in ("instances", "line magics", "cell magics")
    }
    assert added == {
        "instances": ["NBSeed", "Views"],
        "line magics": ["losses", "rng", "rngcheckpoint", "rngpanel", "seed"],
        "cell magics": ["rngcheckpoint", "seed"],
    }
    for kind in ("transformers before", "tree transformers", "matchers"):
        assert len(after[kind]) == len(before[kind]) + 1
    assert len(after["configurables"]) == len(before["configurables"]) + 2
    assert {
        name: len(calls) - len(before["callbacks"][name])
        for name, calls in after["callbacks"].items()
    } == {"pre_execute": 0, "pre_run_cell": 1, "post_execute": 0, "post_run_cell": 1,
          "shell_initialized": 0}  # fmt: skip
    for kind in ("attributes", "variables", "hidden variables", "display hook", "finders"):
        assert after[kind] == before[kind]


def test_a_load_twice_is_one(shell: InteractiveShell, before: dict[str, Any]) -> None:
    load(shell)
    once = traces(shell)
    load(shell)
    nbseed.load_ipython_extension(shell)
    assert traces(shell) == once
    unload(shell)
    assert traces(shell) == before


def test_a_reload_begins_anew(shell: InteractiveShell, before: dict[str, Any]) -> None:
    load(shell)
    notebook = Notebook(shell)
    notebook.ok("%seed 3")
    notebook.ok("%%rngcheckpoint train\nx = 1")
    shell.run_line_magic("reload_ext", "nbseed")
    assert notebook.ok("%seed").lines == ["no seed in force; %seed N sets one"]
    assert notebook.ok("%%rngcheckpoint train\nx = 1").out.startswith("train, run 1: checkpoint ")
    unload(shell)
    del shell.user_ns["x"]
    assert traces(shell) == before


def test_an_unload_without_a_load_is_nothing(
    shell: InteractiveShell, before: dict[str, Any]
) -> None:
    nbseed.unload_ipython_extension(shell)
    assert traces(shell) == before


@pytest.mark.parametrize(
    "cells",
    [
        ["%%rngcheckpoint train\n%unload_ext nbseed\n6 * 7"],
        ["import torch", "%%rngcheckpoint train --probe\n%unload_ext nbseed\n6 * 7"],
        ["%seed 3 --strict --pin-entropy\n%unload_ext nbseed\n6 * 7"],
        ["%seed 3 --strict", "%unload_ext nbseed\nimport os\nos.urandom(4)\n6 * 7"],
    ],
)
def test_an_unload_in_a_cell_leaves_nothing_open(
    shell: InteractiveShell, before: dict[str, Any], cells: list[str]
) -> None:
    load(shell)
    values = [Notebook(shell).ok(cell).value for cell in cells]
    assert values[-1] == 42
    for name in {"torch", "os"} & set(shell.user_ns):
        del shell.user_ns[name]
    assert traces(shell) == before


ENDS = {
    "well": "",
    "by an error": "1 / 0",
    "by an interrupt": "raise KeyboardInterrupt",
    "by an exit": "raise SystemExit",
    "by an await that fails": "import asyncio\nawait asyncio.sleep(0)\n1 / 0",
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS.keys())
@pytest.mark.parametrize(
    "head",
    [
        "%%rngcheckpoint train\n",
        "%%rngcheckpoint train --probe --runs 2\n",
        "%%rngcheckpoint outer\n%%rngcheckpoint train\n",
        "%seed 3 --strict --pin-entropy\n",
    ],
)
def test_nothing_stays_patched_however_a_cell_ends(
    shell: InteractiveShell, before: dict[str, Any], head: str, end: str
) -> None:
    load(shell)
    notebook = Notebook(shell)
    notebook.ok("import random, torch\nfrom random import seed")
    plain = random.seed
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "To exit", UserWarning)
        notebook.run(f"{head}seen = random.seed\nseed(3)\n{end}")
    assert notebook.ns["seen"] is not plain
    assert notebook.ns["seed"] is plain
    after = traces(shell)
    for owner, name in PATCHED:
        key = f"{owner.__name__}.{name}"
        assert after[key] is before[key]
    for key in ("warnings", "filters of a probe"):
        assert after[key] == before[key]
    assert (watch._watches, losses._recorders) == ([], [])


def test_what_is_imported_in_a_cell_is_seen_and_put_back() -> None:
    said = in_a_fresh_process(
        "drawn = []",
        "%%rngcheckpoint train\nimport numpy.random\ndrawn.append(numpy.random.seed.__module__)\n"
        "rng = numpy.random.default_rng()",
        "import nbseed, numpy\n(call,) = nbseed.runs('train')[0].observed.calls\n"
        "drawn = [call.what, numpy.random.seed is numpy.random.mtrand.seed]",
    )
    assert drawn(said) == "drawn: ['numpy.random.default_rng()', True]"


@pytest.mark.usefixtures("before")
def test_a_load_in_a_cell_serves_the_next_one(shell: InteractiveShell) -> None:
    notebook = Notebook(shell)
    notebook.ok("%load_ext nbseed\n%seed 3\nimport random\nx = random.random()")
    random.seed(3)
    assert notebook.ns.pop("x") == random.random()
    assert notebook.ok("%%rngcheckpoint train\n6 * 7").value == 42
    unload(shell)


@pytest.mark.usefixtures("before")
def test_a_magic_of_the_same_name_comes_back(shell: InteractiveShell) -> None:
    def own(line: str) -> str:
        return "own"

    shell.register_magic_function(own, "line", "seed")
    try:
        load(shell)
        unload(shell)
        assert shell.run_line_magic("seed", "3") == "own"
    finally:
        shell.magics_manager.magics["line"].pop("seed", None)


@pytest.mark.usefixtures("before")
def test_the_search_for_objects_ends_with_the_unload(shell: InteractiveShell) -> None:
    load(shell)
    shell.user_ns["own"] = random.Random(3)
    try:
        assert "user:own" in nbseed.fingerprints()
        unload(shell)
        assert "user:own" not in nbseed.fingerprints()
        assert generators.existing().generators.keys() >= {"python", "numpy", "torch.cpu"}
    finally:
        del shell.user_ns["own"]


def test_the_settings_are_listed_with_their_help(notebook: Notebook) -> None:
    text = " ".join(notebook.ok("%config NBSeed").out.split())  # the help is broken into lines
    for setting, meaning in (
        ("report", "Show a line after each checkpointed cell."),
        ("max_runs", "Runs kept for one cell."),
        ("max_checkpoints", "Checkpoints kept in memory, over all cells."),
        (
            "compare_seconds",
            "Seconds in each run for comparing variables with what the first run met; 0: never.",
        ),
    ):
        assert f"NBSeed.{setting}=" in text
        assert meaning in text


def test_a_transformer_that_fails_stays_registered(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: object) -> Any:
        raise RuntimeError("by the test")

    with monkeypatch.context() as patched:
        patched.setattr("nbseed.cells.track", broken)
        notebook.run("x = 1")
    assert extension._loaded[id(notebook.shell)].magics in notebook.shell.ast_transformers


LIGHT = """
import sys
{first}
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
before = set(sys.modules)
shell.run_line_magic("load_ext", "nbseed")
shell.run_cell("%seed 3")
shell.run_cell("%%rngcheckpoint train\\nx = 1")
shell.run_cell("%rng")
heavy = ("torch", "numpy", "matplotlib", "ipywidgets", "scipy", "pandas", "numba", "jax",
         "tensorflow", "cupy", "nbclient", "nbconvert", "nbformat")
print("heavy:", [name for name in heavy if name in sys.modules])
"""


@pytest.mark.parametrize(
    ("first", "heavy"), [("", []), ("import numpy", ["numpy"])], ids=["plain", "the check can fail"]
)
def test_a_load_imports_no_heavy_library(first: str, heavy: list[str]) -> None:
    text = textwrap.dedent(LIGHT).format(first=first)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert f"heavy: {heavy}" in done.stdout.splitlines()


LATE = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "nbseed")
for cell in {cells!r}:
    assert shell.run_cell(cell).success
print("drawn:", shell.user_ns["drawn"])
"""


def in_a_fresh_process(*cells: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", LATE.format(cells=list(cells))],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout


IDIOM = (
    "import random, numpy, torch\n"
    "random.seed(3); numpy.random.seed(3); torch.manual_seed(3)\n"
    "drawn = [random.random(), numpy.random.rand(), torch.rand(1, dtype=torch.float64).item()]"
)
DRAWN = "drawn = [random.random(), numpy.random.rand(), torch.rand(1, dtype=torch.float64).item()]"


def drawn(said: str) -> str:
    return next(line for line in said.splitlines() if line.startswith("drawn: "))


def test_a_seed_before_the_import_is_the_idiom() -> None:
    said = in_a_fresh_process("%seed 3", "import random, numpy, torch", DRAWN)
    assert drawn(said) == drawn(in_a_fresh_process(IDIOM))
    assert said.splitlines()[0] == "seed 3: python seeded; numpy and torch when imported"


def test_a_library_that_a_checkpointed_cell_imports_joins_the_checkpoint() -> None:
    cell = (
        "%%rngcheckpoint train\nimport random, numpy, torch\n"
        "drawn.append([random.random(), numpy.random.rand(), torch.rand(1).item()])"
    )
    said = in_a_fresh_process("drawn = []", cell, cell, "assert drawn[0] == drawn[1]")
    assert "train, run 2: rewound to " in said
    assert "; same draws" in said
    assert "note: not in the checkpoint" not in said


def test_a_library_that_a_cell_imports_gets_the_seed_of_the_cell() -> None:
    cell = "import numpy\ndrawn.append(numpy.random.rand())"
    said = in_a_fresh_process("%seed 3 --each-cell", "drawn = []", cell, cell, cell, "x = 1",
                              "assert drawn[0] == drawn[1] == drawn[2]")  # fmt: skip
    assert "each later cell under a seed of its own" in said


def test_a_library_that_is_imported_under_a_cells_seed_is_put_to_the_one_in_force() -> None:
    said = in_a_fresh_process(
        "%seed 3", "%%seed 7\nimport random, numpy, torch\nnumpy.random.rand(); torch.rand(1)",
        DRAWN,
    )  # fmt: skip
    assert drawn(said) == drawn(in_a_fresh_process(IDIOM))
