"""A notebook in fresh kernels, from its file to the verdict."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from .compare import Verdict, judge
from .execution import Cell, Settings, cells_of, execute, read

Progress = Callable[[int, int], Callable[[Cell, int], None]]


def verify(
    path: Path,
    settings: Settings,
    runs: int = 2,
    with_saved: bool = True,
    progress: Progress | None = None,
) -> Verdict:
    """What becomes of a notebook that is run in fresh kernels.

    Parameters
    ----------
    path
        Its file, which is not changed.
    settings
        How it is run.
    runs
        How many times.
    with_saved
        Whether it is also compared with what the file holds of an earlier run.
    progress
        Called before each run with its number and that of all; what it returns is called before
        each cell. A last call with 0 says that all have ended.

    Raises
    ------
    CannotTellError
        If it cannot be read or run to its end.
    """
    notebook = read(path)
    executions = []
    for number in range(1, runs + 1):
        told = progress(number, runs) if progress else lambda cell, count: None
        executions.append(execute(path, notebook, settings, told))
    if progress:
        progress(0, runs)
    return judge(str(path), cells_of(notebook), executions, settings.seed, with_saved)
