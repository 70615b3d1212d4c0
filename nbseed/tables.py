"""The generators and the checkpoints as small tables, in text and in HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from .checkpoints import CHECKPOINTS
from .errors import FileError
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
        below = "".join(f"<div>{escape(line)}</div>" for line in self.below)
        return f'<div class="nbseed-table">{table}{below}</div>'


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
    rows: list[tuple[str, ...]] = []
    notes: list[str] = []
    try:
        stored = {listed.row: listed for listed in CHECKPOINTS.store.listed()}
    except FileError as error:
        stored = {}
        notes.append(str(error))
    for checkpoint in CHECKPOINTS.kept.values():
        runs = [r for r in CHECKPOINTS.runs() if r.checkpoint == checkpoint.identity]
        kept = stored.pop(checkpoint.row, None)
        on_disk = "" if kept is None else _runs(kept.runs)
        mark = checkpoint.snapshot.fingerprint[:8]
        rows.append((checkpoint.name, _seed(checkpoint.seed), mark, str(len(runs)), on_disk))
    rows += [
        (kept.name, _seed(kept.key.seed), kept.fingerprint[:8], "", _runs(kept.runs))
        for kept in stored.values()
    ]
    if stored:
        notes.append("runs on disk alone come in with %losses NAME, or when the cell runs")
    if not rows:
        notes.append("no checkpoints yet: %%rngcheckpoint makes one")
    headings: tuple[str, ...] = ("checkpoint", "seed", "state", "runs", "on disk")
    if not any(row[-1] for row in rows):
        headings, rows = headings[:-1], [row[:-1] for row in rows]
    return Table(headings, rows, notes)


def _seed(seed: int | None) -> str:
    return "none" if seed is None else str(seed)


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"
