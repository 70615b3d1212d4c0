"""What a user typed behind a magic, as values; a line for what is wrong with it."""

from __future__ import annotations

import ast
import shlex
from typing import Any

from IPython.core.error import UsageError

from . import cells, seeding
from .errors import CheckpointError


def arguments(magic: Any, line: str) -> Any:
    """The arguments of a magic, as its decorators declare them."""
    return magic.parser.parse_args(words_of(magic.__name__, line))


def words_of(magic: str, line: str) -> list[str]:
    """The words of a line; one in quotes may hold blanks."""
    reader = shlex.shlex(line, posix=True)
    reader.whitespace_split = True
    reader.commenters = reader.escape = ""  # Windows' paths hold backslashes
    try:
        return list(reader)
    except ValueError as error:
        raise UsageError(f"%{magic} {line}: {error}") from None


def seed_number(text: str | None) -> int | None:
    """N of ``%seed N``."""
    if text is None:
        return None
    try:
        return seeding.check_seed(int(text))
    except ValueError:
        raise UsageError(f"N is an integer from 0 to {2**32 - 1}, got {text}") from None


def names_of(text: str, option: str = "--track") -> tuple[str, ...]:
    """The variables of ``--track a,b``."""
    names = tuple(name.strip() for name in text.split(",")) if text else ()
    for name in names:
        if not name.isidentifier():
            raise CheckpointError(f"{option} takes variable names and commas, got {text!r}")
    return names


def check_tracked(names: tuple[str, ...], tree: ast.Module) -> None:
    """A name that is never assigned is a slip; said before the cell runs, not after."""
    if any(
        isinstance(node, ast.Attribute) and node.attr == "run_cell_magic" for node in ast.walk(tree)
    ):
        return  # the code is inside a text
    assigned = cells.assigned(tree)
    for name in names:
        if name not in assigned:
            there = ", ".join(sorted(assigned)) or "nothing"
            raise CheckpointError(f"--track {name}: the cell assigns {there}")
