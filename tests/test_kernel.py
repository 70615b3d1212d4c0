"""The extension in a real Jupyter kernel, in front ends with and without cell identities."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kernel as driver
import nbclient
import nbformat
import papermill
import pytest
from kernel import Kernel
from nbconvert import HTMLExporter
from nbformat.v4 import new_code_cell, new_notebook

from nbseed.report import MIME

pytestmark = pytest.mark.kernel

CELL_IDS = pytest.mark.parametrize("cell_id", [None, "7c1d3f20-99aa"], ids=["no id", "id"])
ALL = """
import asyncio, random, time, numpy as np, torch
rng = np.random.default_rng(5)
loader = torch.utils.data.DataLoader(
    torch.arange(8), 4, shuffle=True, generator=torch.Generator().manual_seed(9)
)
async def naps():
    for _ in range(300):  # the kernel cancels a cell when its loop wakes up
        await asyncio.sleep(0.1)
def draw():
    return [
        random.random(), random.gauss(0, 1), np.random.standard_normal(3).tolist(),
        torch.randn(3, dtype=torch.float64).tolist(), rng.normal(size=3).tolist(),
        [batch.tolist() for batch in loader], rng.spawn(1)[0].random(),
    ]
"""


@pytest.fixture(scope="module")
def running() -> Iterator[Kernel]:
    with driver.started() as kernel:
        yield kernel


@pytest.fixture
def kernel(running: Kernel) -> Iterator[Kernel]:
    """The module's kernel with the extension and without variables of other tests."""
    running.ok("%load_ext nbseed")
    running.ok(ALL)
    yield running
    running.ok("%unload_ext nbseed")
    running.ok("%reset -f")


def marked(text: str) -> str:
    """A report with its fingerprints and text keys replaced."""
    return re.sub(r"\b[0-9a-f]{8}\b", "########", text)


def report(ran: driver.Ran) -> str:
    """The report of a cell: one display with text, HTML and data."""
    bundles = [bundle for bundle in ran.bundles if MIME in bundle]
    assert len(bundles) == 1
    assert sorted(bundles[0]) == [MIME, "text/html", "text/plain"]
    return marked(bundles[0]["text/plain"])


def runs(ran: driver.Ran) -> list[dict[str, Any]]:
    """The data of a cell's runs, as a saved notebook holds it."""
    data = next(bundle[MIME] for bundle in ran.bundles if MIME in bundle)
    assert data["version"] == 1
    return list(data["runs"])


@CELL_IDS
@pytest.mark.parametrize(
    "body", ["draw()", "await asyncio.sleep(0.01)\ndraw()", "%time drawn = draw()\ndrawn"]
)
def test_rerun_draws_the_same_numbers_from_every_generator(
    kernel: Kernel, cell_id: str | None, body: str
) -> None:
    cell = f"%%rngcheckpoint\n{body}"
    first = kernel.ok(cell, cell_id)
    kernel.ok("draw()")
    second = kernel.ok(cell, cell_id)
    assert first.texts[0] == second.texts[0]
    assert kernel.ok(body).texts[0] != first.texts[0]
    drew = r"python \(\d+ words\), numpy \(\d+ words\), torch.cpu \(\d+ words\)"
    own = r"user:rng \(\d+ 64-bit words\), user:loader.generator \(\d+ words\)"
    line = report(first).splitlines()[0]
    assert re.search(rf"taken, no seed in force; drew from {drew}, {own}$", line)
    assert report(second).splitlines()[0].endswith("run 2: rewound to ########; same draws")
    assert ("this cell is known by its text alone" in report(first)) is (cell_id is None)
    assert [run["same"] for run in runs(second)] == [True]
    assert runs(first)[0]["ends"] == runs(second)[0]["ends"]


@CELL_IDS
def test_an_interrupted_cell_is_rewound(kernel: Kernel, cell_id: str | None) -> None:
    cell = (
        "%%rngcheckpoint\nx = draw()\nprint(x)\nif stop:\n    time.sleep(30)\ny = draw()\nprint(y)"
    )
    kernel.ok("stop = True")
    first = kernel.interrupt(cell, cell_id)
    assert first.status == "error"
    assert first.traceback.count("KeyboardInterrupt") >= 1
    assert runs(first)[0]["status"] == "interrupted"
    assert report(first).splitlines()[0].endswith("; interrupted")
    kernel.ok("stop = False")
    second = kernel.ok(cell, cell_id)
    assert second.stdout.splitlines()[0] == first.stdout.splitlines()[0]
    assert runs(second)[0]["status"] == "ok"
    assert runs(second)[0]["number"] == 2
    assert kernel.ok(cell, cell_id).stdout == second.stdout


@CELL_IDS
def test_an_interrupted_cell_that_awaits_is_rewound(kernel: Kernel, cell_id: str | None) -> None:
    cell = "%%rngcheckpoint\nx = draw()\nprint(x)\nif stop:\n    await naps()\nprint(draw())"
    kernel.ok("stop = True")
    first = kernel.interrupt(cell, cell_id)
    assert first.status == "error"
    assert runs(first)[0]["status"] == "interrupted"
    kernel.ok("stop = False")
    second = kernel.ok(cell, cell_id)
    assert second.stdout.splitlines()[0] == first.stdout.splitlines()[0]
    assert (runs(second)[0]["number"], runs(second)[0]["status"]) == (2, "ok")
    assert kernel.ok("torch.Tensor.backward.__module__").texts == ["'torch._tensor'"]


@pytest.mark.parametrize("wait", ["time.sleep(30)", "await naps()"])
def test_an_interrupted_cell_under_a_seed_puts_the_generators_back(
    kernel: Kernel, wait: str
) -> None:
    kernel.ok("import nbseed\n%seed 4\nbefore = nbseed.fingerprints()")
    ran = kernel.interrupt(f"%%seed 3\nprint(draw())\n{wait}")
    assert ran.status == "error"
    assert kernel.ok("nbseed.fingerprints() == before").texts == ["True"]


@CELL_IDS
@pytest.mark.parametrize("head", ["%%rngcheckpoint train", "%%seed 3"])
def test_an_error_has_one_traceback_with_the_line_of_the_cell(
    kernel: Kernel, head: str, cell_id: str | None
) -> None:
    ran = kernel.run(f"{head}\n\nx = 1\n1 / 0", cell_id)
    assert ran.status == "error"
    assert ran.traceback.count("Traceback (most recent call last)") == 1
    assert re.search(r"Cell In\[\d+\], line 4\n", ran.traceback)
    assert "----> 4 1 / 0" in ran.traceback
    assert "nbseed" not in ran.traceback


@pytest.mark.parametrize(
    "cell",
    ["%%rngcheckpoint a\n1 / 0", "%%seed 3\n1 / 0", "%%rngcheckpoint a\nx = = 1", "%%seed x\n1",
     "%%rngcheckpoint a\nawait asyncio.sleep(0)\n1 / 0", "%%rngcheckpoint a --runs 2\n1 / 0"],
)  # fmt: skip
def test_run_all_stops_at_an_error(kernel: Kernel, cell: str) -> None:
    # The kernel aborts what reaches it for that long; by default only what has reached it by then.
    kernel.ok("get_ipython().kernel.stop_on_error_timeout = 2.0")
    ran = kernel.run_all([cell, "after = 1", "%%rngcheckpoint b\nafter = 1"])
    assert [each.status for each in ran] == ["error", "aborted", "aborted"]
    time.sleep(2.2)
    kernel.ok("get_ipython().kernel.stop_on_error_timeout = 0.0")
    assert kernel.ok("'after' in globals()").texts == ["False"]


def test_several_runs_with_await_and_a_last_expression(kernel: Kernel) -> None:
    ran = kernel.ok("%%rngcheckpoint train --runs 3\nawait asyncio.sleep(0.01)\ndraw()")
    drawn = [bundle["text/plain"] for bundle in ran.bundles if MIME not in bundle]
    assert len(drawn) == 3
    assert len(set(drawn)) == 1
    assert [line.partition(":")[0] for line in report(ran).splitlines()] == [
        "train, run 1", "train, run 2", "train, run 3",
    ]  # fmt: skip
    assert [run["number"] for run in runs(ran)] == [1, 2, 3]


def test_a_trailing_semicolon_silences_the_last_expression(kernel: Kernel) -> None:
    ran = kernel.ok("%%rngcheckpoint train\n5;")
    assert [sorted(bundle) for bundle in ran.bundles] == [[MIME, "text/html", "text/plain"]]


def test_the_report_can_be_silenced(kernel: Kernel) -> None:
    kernel.ok("%config NBSeed.report = False")
    assert kernel.ok("%%rngcheckpoint train\nx = 1").bundles == []
    kernel.ok("%config NBSeed.report = True")
    assert report(kernel.ok("%%rngcheckpoint train\nx = 1")).startswith("train, run 2: ")


def test_each_cell_draws_the_same_in_any_order(kernel: Kernel) -> None:
    kernel.ok("%seed 3 --each-cell", "zero")
    cell = "random.random(), np.random.rand(), torch.rand(1).item()"
    first = {name: kernel.ok(cell, name).texts for name in "abc"}
    for name in "cabbca":
        assert kernel.ok(cell, name).texts == first[name]
    assert len({tuple(texts) for texts in first.values()}) == 3


def test_a_silent_request_and_an_empty_cell_are_nothing(kernel: Kernel) -> None:
    kernel.ok("%%rngcheckpoint train\ndraw()")
    assert kernel.run("x = 1", silent=True, store_history=False).status == "ok"
    assert kernel.run("").status == "ok"
    assert kernel.run("", "id").bundles == []
    assert report(kernel.ok("%%rngcheckpoint train\ndraw()")).endswith("same draws")


def test_the_overlay_is_a_picture_with_its_verdict(kernel: Kernel) -> None:
    kernel.ok("w = torch.zeros(1, requires_grad=True)")
    for _ in range(2):
        kernel.ok(
            "%%rngcheckpoint train\nfor i in range(5):\n    (w + torch.rand(1)).sum().backward()"
        )
    ran = kernel.ok("%losses")
    assert len(ran.bundles) == 1
    assert ran.texts == ["train: 2 runs, bit-identical"]
    assert ran.bundles[0]["image/png"].startswith("iVBORw0KGgo")


@pytest.mark.parametrize("magic", ["%seed", "%%seed", "%%rngcheckpoint", "%losses", "%rng"])
def test_help_is_shown(kernel: Kernel, magic: str) -> None:
    pages = kernel.ok(f"{magic}?").pages
    assert len(pages) == 1
    assert "Docstring:\n" in pages[0]
    assert magic in pages[0]


def test_load_and_unload_in_a_kernel_leave_no_magic(running: Kernel) -> None:
    running.ok("names = lambda: str(get_ipython().magics_manager.lsmagic())")
    before = running.ok("names()").texts
    running.ok("%load_ext nbseed")
    assert running.ok("names()").texts != before
    running.ok("%unload_ext nbseed")
    assert running.ok("names()").texts == before
    assert running.run("%seed 3").status == "error" or running.run("%seed 3").stderr
    running.ok("%reset -f")


# -- other front ends ------------------------------------------------------------------------------

CELLS = [
    "%load_ext nbseed\n%seed 3",
    "import asyncio, random\nimport numpy as np",
    "%%rngcheckpoint train\nawait asyncio.sleep(0)\nrandom.random(), np.random.rand(2).tolist()",
    "%%rngcheckpoint train --runs 2 --track x\nfor i in range(3):\n    x = random.gauss(0, 1)\nx",
    "%%rngcheckpoint\nnp.random.standard_normal(3)",
]


def notebook() -> nbformat.NotebookNode:
    return new_notebook(cells=[new_code_cell(text) for text in CELLS])


def outputs(done: nbformat.NotebookNode) -> list[Any]:
    return [cell.outputs for cell in done.cells if cell.source in CELLS]


def test_nbclient_gives_the_same_outputs_again() -> None:
    done = [nbclient.NotebookClient(notebook(), timeout=60).execute() for _ in range(2)]
    first, second = map(outputs, done)
    assert first == second
    assert [len(cell) for cell in first] == [1, 0, 2, 3, 2]
    assert all(MIME in cell[-1]["data"] for cell in first[2:])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_papermill_gives_the_same_outputs_again(tmp_path: Path) -> None:
    nbformat.write(notebook(), tmp_path / "in.ipynb")
    done = [
        papermill.execute_notebook(
            str(tmp_path / "in.ipynb"), str(tmp_path / f"out{number}.ipynb"),
            kernel_name="python3", progress_bar=False,
        )
        for number in range(2)
    ]  # fmt: skip
    first, second = map(outputs, done)
    assert first == second
    assert [len(cell) for cell in first] == [1, 0, 2, 3, 2]


def test_a_plain_terminal_prints_the_line(tmp_path: Path) -> None:
    cell = "%%rngcheckpoint train\nimport random\nrandom.random()\n\n\n"
    done = subprocess.run(
        [sys.executable, "-m", "IPython", "--no-banner", "--simple-prompt", "--quick"],
        input=f"%load_ext nbseed\n%seed 3\n{cell}{cell}",
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={**os.environ, "IPYTHONDIR": str(tmp_path), "NO_COLOR": "1"},
    )
    said = [marked(line) for line in done.stdout.splitlines()]
    assert (
        "train, run 1: checkpoint ######## taken under seed 3; drew from python (2 words)" in said
    )
    assert "train, run 2: rewound to ########; same draws" in said
    assert done.stdout.count(": 0.23796462709189137") == 2
    assert "object" not in done.stdout


# -- the panel -------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", ["%rngpanel", "import nbseed\nnbseed.Panel()"])
def test_the_panel_has_a_table_beside_it_for_where_no_widget_can_be(
    kernel: Kernel, cell: str
) -> None:
    kernel.ok("%seed 3")
    live, table = kernel.ok(cell).bundles
    assert set(live) == {"application/vnd.jupyter.widget-view+json", "text/plain"}
    assert live["text/plain"] == ""
    assert set(table) == {"text/html", "text/plain"}
    assert table["text/plain"].splitlines()[0] == "seed 3 in force"
    assert table["text/html"].startswith('<div class="nbseed-saved">')
    assert ".nbseed-saved" not in re.findall("<style>.*?</style>", table["text/html"], re.S)[0]


def test_a_page_made_of_a_notebook_shows_the_panels_table(tmp_path: Path) -> None:
    cells = [new_code_cell(text) for text in ("%load_ext nbseed", "%seed 3", "%rngpanel")]
    notebook = nbclient.execute(new_notebook(cells=cells), cwd=str(tmp_path))
    notebook.metadata.pop("widgets", None)
    page, _ = HTMLExporter().from_notebook_node(notebook)
    assert page.count("generator</th>") == 1
    assert "when it is run again" in page
