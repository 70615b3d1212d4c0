"""``nbseed demo``: the shipped tutorial in a real kernel, and its training cell over again."""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbseed

from ..errors import CannotTellError
from ..verify.kernels import started

TUTORIAL = "02_same_code_other_losses.ipynb"
FOLDER = "nbseed-demo"
SEED = 3
STEPS = range(99, 1000, 100)  # those that the training cell prints, counted from 0
PICTURE = "losses.png"

# Tags of the tutorial's cells: what the training cell needs, and the cell itself.
_SETUP, _TRAINING = "setup", "training"
_CELL_S = 600  # how long a cell may take
_LAB_FAILED = 2


@dataclass(frozen=True)
class Trained:
    """One run of the training cell.

    Attributes
    ----------
    start, end
        Fingerprints of the generators before and after it: 32 hex digits.
    losses
        The loss of each step.
    """

    start: str
    end: str
    losses: Sequence[float]

    @property
    def bits(self) -> bytes:
        """All losses, so that equal means equal in every bit."""
        return struct.pack(f"{len(self.losses)}d", *self.losses)


def add_to(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "demo",
        help="run the shipped tutorial, repeat its training cell, and print the verdict",
        description="Runs the shipped tutorial in a Jupyter kernel, then repeats its training cell "
        "in a fresh one: twice unseeded, twice seeded and checkpointed. Exit code 0: the seeded "
        "runs were bit-identical and the unseeded ones were not; 1: otherwise; 2: could not tell.",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path(FOLDER),
        metavar="DIR",
        help=f"where the picture, the notebook and its HTML go (default: {FOLDER})",
    )
    parser.add_argument(
        "--lab", action="store_true", help="open the tutorial in JupyterLab instead"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Carry out ``nbseed demo``; returns the exit code."""
    shipped = tutorial()
    if args.lab:
        return _open_lab(shipped, args.out)
    _check_writable(args.out)
    with tempfile.TemporaryDirectory(prefix="nbseed-", ignore_cleanup_errors=True) as temporary:
        return asyncio.run(_demo(shipped, args.out, Path(temporary)))


def tutorial() -> Path:
    """The tutorial: inside the package where it is installed, beside it in a checkout."""
    package = Path(nbseed.__file__).parent
    for folder in (package, package.parent):
        path = folder / "notebooks" / TUTORIAL
        if path.is_file():
            return path
    raise CannotTellError(f"this installation lacks the tutorial, notebooks/{TUTORIAL}")


# -- the two kernels ---------------------------------------------------------------------------


async def _demo(shipped: Path, out: Path, temporary: Path) -> int:
    import nbformat

    notebook = nbformat.read(shipped, as_version=4)
    _say(f"{TUTORIAL} in a Jupyter kernel of {sys.executable}")
    async with _kernel(notebook, temporary) as client:
        places = [i for i, cell in enumerate(notebook.cells) if cell.cell_type == "code"]
        for number, place in enumerate(places, 1):
            with _progress(f"cell {number} of {len(places)}", notebook.cells[place].source):
                await _execute(client, place)

    picture = temporary / PICTURE
    _say("\nThe training cell again, in a fresh kernel")
    async with _kernel(nbformat.v4.new_notebook(), temporary) as client:
        unseeded, seeded = await _train_again(client, notebook, picture)

    _say(f"\n{verdict_table(unseeded, seeded)}\n\n{verdict(unseeded, seeded)}")
    _write(out, notebook, picture)
    return exit_code(unseeded, seeded)


async def _train_again(
    client: Any, notebook: Any, picture: Path
) -> tuple[list[Trained], list[Trained]]:
    """Two unseeded runs, then two that are seeded and checkpointed; their overlays as a picture."""
    for cell in _tagged(notebook, _SETUP):
        with _progress("setup", cell.source):
            await _source(client, cell.source)
    body = _body(_tagged(notebook, _TRAINING)[0].source)
    await _source(client, "%load_ext nbseed")
    # --reset takes a new snapshot each time: the run is recorded, and nothing is rewound.
    for number in (1, 2):
        source = f"%%rngcheckpoint unseeded --reset\n{body}"
        with _progress(f"unseeded, run {number}", source):
            await _source(client, source)
    await _source(client, f"%seed {SEED}")
    for number in (1, 2):
        source = f"%%rngcheckpoint seeded\n{body}"
        with _progress(f"seeded, run {number}", source):
            await _source(client, source)
    found = json.loads(await _source(client, _REPORT))
    await _source(client, _DRAW.format(path=str(picture), seed=SEED))
    return [Trained(**t) for t in found["unseeded"]], [Trained(**t) for t in found["seeded"]]


_REPORT = """\
import json, nbseed
print(json.dumps({name: [
    {"start": run.start, "end": run.end, "losses": run.losses["loss"].tolist()}
    for run in nbseed.runs(name)
] for name in ("unseeded", "seeded")}))
"""

_DRAW = """\
import nbseed
from matplotlib.figure import Figure
figure = Figure(figsize=(13, 6), layout="constrained")
for axes, name, said in zip(
    figure.subplots(1, 2), ("unseeded", "seeded"), ("unseeded", "%seed {seed}, checkpointed")
):
    nbseed.overlay(nbseed.runs(name), axes, log=True)
    axes.set_title(f"{{said}}: {{axes.get_title()}}")
figure.savefig({path!r}, dpi=120)
"""


def _kernel(notebook: Any, temporary: Path) -> AbstractAsyncContextManager[Any]:
    """A client with a kernel of this interpreter, whatever kernels are installed."""
    from jupyter_client.kernelspec import KernelSpec, KernelSpecManager

    class OwnInterpreter(KernelSpecManager):
        def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
            command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
            return KernelSpec(argv=command, display_name=kernel_name, language="python")

    return started("python3", OwnInterpreter(), notebook, temporary, temporary, _CELL_S)


async def _source(client: Any, source: str) -> str:
    """Execute code in a cell of its own after the others; returns what it printed."""
    from nbformat.v4 import new_code_cell

    cell = new_code_cell(source)
    client.nb.cells.append(cell)
    await _execute(client, len(client.nb.cells) - 1)
    return "".join(o.text for o in cell.outputs if o.output_type == "stream" and o.name == "stdout")


async def _execute(client: Any, place: int) -> None:
    """Execute one cell of the client's notebook; what stops it is a CannotTellError."""
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    cell = client.nb.cells[place]
    cell.outputs = []
    try:
        await client.async_execute_cell(cell, place)
    except CellExecutionError as error:
        said = f"{error.ename}: {error.evalue}"
    except CellTimeoutError:
        said = f"it took more than {_CELL_S} s"
    except DeadKernelError:
        if await client.km.is_alive():  # nbclient says the same of a cell that was cancelled
            raise asyncio.CancelledError from None
        said = "the kernel died"
    else:
        return
    raise CannotTellError(f"a cell failed ({_first_line(cell.source)}): {_first_line(said)}")


# -- the verdict ---------------------------------------------------------------------------------


def same(runs: Sequence[Trained]) -> bool:
    """Whether all runs started and ended in the same states and had the same losses, bit by bit."""
    return len({(run.start, run.end, run.bits) for run in runs}) == 1


def exit_code(unseeded: Sequence[Trained], seeded: Sequence[Trained]) -> int:
    """0 if the seeded runs were bit-identical and the unseeded ones not, else 1."""
    identical = len({run.bits for run in unseeded}) == 1
    return 0 if same(seeded) and not identical else 1


def verdict(unseeded: Sequence[Trained], seeded: Sequence[Trained]) -> str:
    """The same in words."""
    steps = len(seeded[0].losses)
    before = "the same losses" if len({run.bits for run in unseeded}) == 1 else "other losses"
    after = f"bit-identical in all {steps} steps" if same(seeded) else "not bit-identical"
    mark = "as it should be" if exit_code(unseeded, seeded) == 0 else "NOT as it should be"
    return f"Unseeded, the second run gave {before}. Seeded, it was {after}: {mark}."


def verdict_table(unseeded: Sequence[Trained], seeded: Sequence[Trained]) -> str:
    """Losses and fingerprints of two unseeded and two seeded runs, side by side, as aligned text.

    Nine digits tell any two float32 values apart; `same` and `differs` are about all bits.
    """
    rows = [_row("start", [run.start[:8] for run in (*unseeded, *seeded)])]
    for step in STEPS:
        rows.append(_row(f"step {step}", [_loss(run, step) for run in (*unseeded, *seeded)]))
    rows.append(_row("end", [run.end[:8] for run in (*unseeded, *seeded)]))
    whole = [_word(len({run.bits for run in pair}) == 1) for pair in (unseeded, seeded)]
    rows.append(["all", "", "", whole[0], "", "", whole[1]])
    head = ["", "unseeded 1", "unseeded 2", "", f"seed {SEED}, 1", f"seed {SEED}, 2", ""]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in (head, *rows))


def _row(label: str, values: Sequence[str]) -> list[str]:
    first, second, third, fourth = values
    return [label, first, second, _word(first == second), third, fourth, _word(third == fourth)]


def _loss(run: Trained, step: int) -> str:
    return f"{run.losses[step]:.9g}" if step < len(run.losses) else "-"


def _word(is_same: bool) -> str:
    return "same" if is_same else "differs"


# -- files and words -----------------------------------------------------------------------------


def _check_writable(folder: Path) -> None:
    """Know it before the minute of work, not after."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except FileExistsError:
        raise CannotTellError(f"cannot write to {folder}: it is not a folder") from None
    except OSError as error:
        raise CannotTellError(f"cannot write to {folder}: {error.strerror}") from None


def _write(out: Path, notebook: Any, picture: Path) -> None:
    import nbformat

    written = [out / PICTURE, out / TUTORIAL, (out / TUTORIAL).with_suffix(".html")]
    try:
        shutil.copyfile(picture, written[0])
        nbformat.write(notebook, written[1])
        written[2].write_text(_as_html(notebook), encoding="utf-8")
    except OSError as error:
        raise CannotTellError(f"cannot write to {out}: {error.strerror}") from None
    _say("wrote " + ", ".join(map(str, written)))


def _as_html(notebook: Any) -> str:
    """One file that needs no network: the tutorial has no formulas and no widgets."""
    from nbconvert import HTMLExporter

    exporter = HTMLExporter(mathjax_url="", require_js_url="", jquery_url="")
    page, _ = exporter.from_notebook_node(notebook)
    return str(page)


def _open_lab(shipped: Path, out: Path) -> int:
    """Open a copy, so that the shipped tutorial stays as it is; an earlier copy is kept."""
    if importlib.util.find_spec("jupyterlab") is None:
        raise CannotTellError('JupyterLab is not installed: pip install "nbseed[lab]"')
    _check_writable(out)
    copy = out / TUTORIAL
    if not copy.exists():
        shutil.copyfile(shipped, copy)
    _say(f"JupyterLab on {copy}; Ctrl-C ends it")
    lab = subprocess.Popen([sys.executable, "-m", "jupyterlab", str(copy)])
    while True:
        try:
            return _LAB_FAILED if lab.wait() else 0
        except KeyboardInterrupt:  # JupyterLab got it too, and asks
            continue


def _tagged(notebook: Any, tag: str) -> list[Any]:
    cells = [cell for cell in notebook.cells if tag in cell.metadata.get("tags", ())]
    if not cells:
        raise CannotTellError(f"no cell of {TUTORIAL} has the tag {tag!r}")
    return cells


def _body(source: str) -> str:
    """A cell without its ``%%`` line."""
    head, _, rest = source.partition("\n")
    return rest if head.startswith("%%") else source


@contextmanager
def _progress(what: str, source: str) -> Iterator[None]:
    """A line that says what runs, and afterwards how long it took."""
    print(f"  {what:<16}  {_first_line(source):<48}", end="", flush=True)
    began = time.perf_counter()
    try:
        yield
    except BaseException:
        print(flush=True)
        raise
    _say(f"  {time.perf_counter() - began:.1f} s")


def _first_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    line = lines[0].strip() if lines else ""
    return line if len(line) <= 48 else f"{line[:47]}…"


def _say(text: str) -> None:
    print(text, flush=True)
