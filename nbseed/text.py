"""A cell's code, and what its syntax tells."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from . import cells
from .reads import names_assigned, names_read, names_used


@dataclass(frozen=True)
class Text:
    """A cell's code, and what its syntax tells.

    Attributes
    ----------
    body
        The cell below its magic, as typed.
    source
        The same as Python, on the cell's own lines; "" if it is none.
    reads, uses, assigns
        Variables that it reads before it assigns them; all that it mentions; those it assigns.
    tracked
        Variables whose assignments are recorded.
    """

    body: str
    source: str = ""
    reads: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    assigns: tuple[str, ...] = ()
    tracked: tuple[str, ...] = ()


def parsed(body: str, transform: Callable[[str], str]) -> ast.Module | None:
    """The tree of a body; None if it is no Python even after IPython's `transform`."""
    try:
        return ast.parse(transform(body))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def text_of(
    cell: str,
    body: str,
    tree: ast.Module | None,
    transform: Callable[[str], str],
    variables: Iterable[str],
    tracked: tuple[str, ...] = (),
) -> Text:
    """What is known of a body: its Python on the cell's own lines, and its variables.

    Parameters
    ----------
    cell, body, tree
        The whole cell, the code below its magic, and that code's `parsed` tree.
    transform
        IPython's transformation of a whole cell.
    variables
        All of the notebook, for a cell that runs a script in its place.
    """
    if tree is None:
        return Text(body, tracked=tracked)
    above = cell[: len(cell) - len(body)].count("\n") if cell.endswith(body) else 0
    source = "\n" * above + transform(body)
    if cells.runs_a_script(tree):
        everything = tuple(variables)
        return Text(body, source, everything, everything, (), tracked)
    return Text(body, source, names_read(tree), names_used(tree), names_assigned(tree), tracked)
