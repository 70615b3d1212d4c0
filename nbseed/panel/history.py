"""The ribbon's data: after each cell, the state of each generator."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..checkpoint import Ended
from ..report import mark_of

COLUMNS = 200
"""Cells that the ribbon goes back."""


@dataclass(frozen=True)
class Column:
    """One executed cell.

    Attributes
    ----------
    number
        Counts the columns of a history from 1.
    label
        ``[7] train``.
    sign, word
        What became of a checkpointed run, ``=`` and ``same as the first run``; "" for other cells.
    marks
        8 digits of the fingerprint after it, by generator.
    parted
        Generators that ended elsewhere than in the first run.
    """

    number: int
    label: str
    sign: str
    word: str
    marks: Mapping[str, str]
    parted: frozenset[str] = frozenset()

    def is_still(self, before: Column | None) -> bool:
        """Whether there is nothing to see that the column before it does not show."""
        return before is not None and not self.sign and self.marks == before.marks


class History:
    """The columns since somebody looked, bounded; lines keep the order in which they came."""

    def __init__(self) -> None:
        self.columns: deque[Column] = deque(maxlen=COLUMNS)
        self.lines: list[str] = []
        self._count = 0

    def add(self, label: str, marks: Mapping[str, str], ended: Sequence[Ended] = ()) -> Column:
        """A cell has ended and left these fingerprints."""
        self._count += 1
        sign, word, parted = mark_of(ended[-1]) if ended else ("", "", ())
        short = {name: mark[:8] for name, mark in marks.items()}
        column = Column(self._count, label, sign, word, short, frozenset(parted))
        self.columns.append(column)
        self.lines += [name for name in short if name not in self.lines]
        return column

    def since(self, number: int) -> list[Column]:
        """The columns behind one, oldest first."""
        return [column for column in self.columns if column.number > number]

    def clear(self) -> None:
        """Forget all columns."""
        self.columns.clear()
        self.lines.clear()
