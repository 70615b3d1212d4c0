"""The generators and the checkpoints as small tables, in text and in HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from .checkpoints import CHECKPOINTS
from .ledger import Ledger
from .snapshot import snapshot

_CELL = "text-align:left;padding:1px 14px 1px 4px;font-family:monospace"


@dataclass(frozen=True)
class Table:
    """Rows under headings, and sentences below them; shown by any front end."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    below: Sequence[str] = ()

    def __repr__(self) -> str:
        lines = [self.headings, *self.rows] if self.rows else []
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
        return "\n".join([*text, *self.below])

    def _repr_html_(self) -> str:
        rows = [_row("th", self.headings), *(_row("td", row) for row in self.rows)]
        table = f"<table>{''.join(rows)}</table>" if self.rows else ""
        return table + "".join(f"<div>{escape(line)}</div>" for line in self.below)


def _row(tag: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f'<{tag} style="{_CELL}">{escape(c)}</{tag}>' for c in cells) + "</tr>"


def of_generators(ledger: Ledger) -> Table:
    """Every generator that exists now: 8 digits of its fingerprint, who moved it last, how far."""
    taken = snapshot()
    moves = ledger.moves_now(taken.states)
    rows = []
    for name, mark in taken.fingerprints.items():
        move = moves.get(name)
        said = (move.by, move.how_far(name)) if move else ("", "")
        rows.append((name, mark[:8], *said))
    headings = ("generator", "state", "last moved by", "draws")
    return Table(headings, [*rows, ("all", taken.fingerprint[:8], "", "")], taken.notes)


def of_checkpoints() -> Table:
    """Every checkpoint that is kept, with its seed and the number of its runs."""
    rows = []
    for checkpoint in CHECKPOINTS.kept.values():
        runs = [r for r in CHECKPOINTS.runs() if r.checkpoint == checkpoint.identity]
        seed = "none" if checkpoint.seed is None else str(checkpoint.seed)
        rows.append((checkpoint.name, seed, checkpoint.snapshot.fingerprint[:8], str(len(runs))))
    below = () if rows else ("no checkpoints yet: %%rngcheckpoint makes one",)
    return Table(("checkpoint", "seed", "state", "runs"), rows, below)
