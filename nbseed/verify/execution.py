"""One run of a notebook in a fresh kernel, cell by cell, as a front end sends them."""

from __future__ import annotations

import ast
import asyncio
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import CannotTellError, FileError
from ..files import read_whole
from ..run import Run
from . import inside
from .kernels import started

TIMEOUT = 600.0
"""Seconds for one cell."""
SKIP = "nbseed: skip"
"""A comment with this in a cell's first line leaves it out of the comparison."""
SKIP_TAG = "nbseed-skip"
_ANSWER = 120.0  # seconds for a look into the kernel
_MOST = 2**30  # bytes of a notebook
_LOOK = "__import__('nbseed.verify.inside', fromlist=['inside']).{}"


@dataclass(frozen=True)
class Settings:
    """How notebooks are run.

    Attributes
    ----------
    kernel
        A kernel's name; "" for the one that the notebook names.
    seed
        Seeds every generator before the first cell; None leaves that to the notebook.
    timeout
        Seconds for one cell.
    """

    kernel: str = ""
    seed: int | None = None
    timeout: float = TIMEOUT


@dataclass(frozen=True)
class Cell:
    """A code cell of a notebook.

    Attributes
    ----------
    number
        Counts the code cells from 1.
    source
        Its text.
    saved
        The outputs that the notebook's file holds.
    left_out
        Why it is not compared; "" if it is.
    """

    number: int
    source: str
    saved: Sequence[Mapping[str, Any]]
    left_out: str = ""

    @property
    def first_line(self) -> str:
        """The first line that is not empty, shortened."""
        lines = [line.strip() for line in self.source.splitlines() if line.strip()]
        line = lines[0] if lines else ""
        return line if len(line) <= 48 else f"{line[:47]}…"

    def __str__(self) -> str:
        return f"cell {self.number} ({self.first_line})"


@dataclass(frozen=True)
class Executed:
    """What became of a cell in one run.

    Attributes
    ----------
    outputs
        As a notebook's file would hold them.
    run
        What nbseed saw of it; None if it could not look.
    unseen
        Why it could not.
    """

    outputs: Sequence[Mapping[str, Any]]
    run: Run | None
    unseen: str = ""


Progress = Callable[[Cell, int], None]


def read(path: Path) -> Any:
    """A notebook's file as nbformat's newest version has it.

    Raises
    ------
    CannotTellError
        If there is none, or it is no notebook.
    """
    import nbformat

    try:
        text = read_whole(path, _MOST).decode("utf-8-sig")
        if not isinstance(json.loads(text), dict):
            raise ValueError("its JSON is no object")
        notebook = nbformat.reads(text, as_version=4)
        nbformat.validate(notebook)
    except FileError as error:
        raise CannotTellError(str(error).removeprefix(f"{path} ")) from None
    except Exception as error:  # nbformat's, jsonschema's and json's own, and KeyError
        said = f"is no notebook: {_short(str(error) or type(error).__name__)}"
        raise CannotTellError(said) from None
    if not any(cell.cell_type == "code" and cell.source.strip() for cell in notebook.cells):
        raise CannotTellError("has no code cells")
    return notebook


def cells_of(notebook: Any) -> list[Cell]:
    """The code cells of a notebook, empty ones too: the numbers are those that a reader counts."""
    found = []
    for number, cell in enumerate((c for c in notebook.cells if c.cell_type == "code"), 1):
        tags = cell.metadata.get("tags", ())
        first = next((line for line in cell.source.splitlines() if line.strip()), "")
        left_out = ""
        if "skip-execution" in tags:
            left_out = "tag skip-execution: not run"
        elif SKIP_TAG in tags:
            left_out = f"tag {SKIP_TAG}"
        elif first.lstrip().startswith("#") and first.lstrip("# ").startswith(SKIP):
            left_out = f"# {SKIP}"
        elif not cell.source.strip():
            left_out = "empty"
        found.append(Cell(number, cell.source, tuple(cell.outputs), left_out))
    return found


def execute(
    path: Path, notebook: Any, settings: Settings, progress: Progress = lambda cell, count: None
) -> list[Executed]:
    """What each code cell gave in a fresh kernel, in order; the notebook is not changed.

    Parameters
    ----------
    path
        The notebook's file: its folder is the kernel's.
    progress
        Called before each cell with the number of all.

    Raises
    ------
    CannotTellError
        If the kernel does not start or dies, a cell raises or takes too long.
    """
    with tempfile.TemporaryDirectory(prefix="nbseed-", ignore_cleanup_errors=True) as temporary:
        return asyncio.run(_execute(path, notebook, settings, progress, Path(temporary)))


async def _execute(
    path: Path, notebook: Any, settings: Settings, progress: Progress, temporary: Path
) -> list[Executed]:
    import nbformat

    copy = nbformat.from_dict(notebook)
    cells = cells_of(notebook)
    places = [place for place, cell in enumerate(copy.cells) if cell.cell_type == "code"]
    found = []
    name = settings.kernel or copy.metadata.get("kernelspec", {}).get("name") or "python3"
    folder = path.absolute().parent
    async with started(name, _specs(name), copy, temporary, folder, settings.timeout) as client:
        if settings.seed is not None:
            await _look(client, f"seed({settings.seed})")
        for cell, place in zip(cells, places, strict=True):
            progress(cell, len(cells))
            found.append(await _one(client, copy.cells[place], place, cell, settings))
    return found


async def _one(client: Any, cell: Any, place: int, known: Cell, settings: Settings) -> Executed:
    """Execute one cell under observation."""
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    cell.outputs = []
    watches = not known.left_out and not cell.source.lstrip().startswith("%%javascript")
    unseen = await _look(client, f"before({cell.source!r})") if watches else known.left_out
    # As JupyterLab sends it; the kernel gives it to the cell's hooks.
    client.kc.session.metadata = {"cellId": cell.id} if cell.get("id") else {}
    try:
        await client.async_execute_cell(cell, place)
    except CellExecutionError as error:
        raise CannotTellError(f"{known} raised {error.ename}: {_short(error.evalue)}") from None
    except CellTimeoutError:
        raise CannotTellError(
            f"{known} took more than {settings.timeout:g} s; --timeout gives it longer"
        ) from None
    except DeadKernelError:
        if await client.km.is_alive():  # nbclient says the same of a cell that was cancelled
            raise asyncio.CancelledError from None
        raise CannotTellError(f"{known}: the kernel died") from None
    finally:
        client.kc.session.metadata = {}
    if unseen:
        return Executed(tuple(cell.outputs), None, unseen)
    try:
        run = inside.load(await _look(client, "after()", raises=True))
    except (FileError, ValueError, KeyError) as error:
        return Executed(tuple(cell.outputs), None, _short(str(error)))
    return Executed(tuple(cell.outputs), run)


async def _look(client: Any, call: str, raises: bool = False) -> str:
    """What a call of `inside` returned; if it failed, why, or ValueError with `raises`."""
    import queue

    try:
        reply = await client.kc.execute(
            "",
            silent=True,
            store_history=False,
            user_expressions={"nbseed": _LOOK.format(call)},
            reply=True,
            timeout=_ANSWER,
        )
        found = reply["content"]["user_expressions"]["nbseed"]
    except (TimeoutError, queue.Empty, RuntimeError, KeyError):
        alive = await client.km.is_alive()
        raise CannotTellError(
            "the kernel does not answer" if alive else "the kernel died"
        ) from None
    if found["status"] == "ok":
        return str(ast.literal_eval(found["data"]["text/plain"]))
    said = _short(f"{found.get('ename')}: {found.get('evalue')}")
    if found.get("ename") in ("ModuleNotFoundError", "ImportError"):
        raise CannotTellError(f"the kernel cannot import nbseed ({said}); install it there")
    if raises:
        raise ValueError(said)
    return said


def _specs(name: str) -> Any:
    """The kernels that there are, if one for Python is called `name`."""
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    specs = KernelSpecManager()
    try:
        spec = specs.get_kernel_spec(name)
    except (NoSuchKernel, ValueError):
        there = ", ".join(sorted(specs.find_kernel_specs()))
        raise CannotTellError(
            f"there is no kernel called {name!r}; there are: {there}; --kernel takes one of them"
        ) from None
    if spec.language.lower() != "python":
        raise CannotTellError(f"the kernel {name} is for {spec.language}, not for Python")
    return specs


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 200 else f"{line[:199]}…"
