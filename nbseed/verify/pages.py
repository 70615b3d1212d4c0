"""Verdicts as text, as one HTML page, and as JSON values."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from .. import __version__
from .compare import DIFFERS, FOLLOWS, LEFT_OUT, SAME, CellVerdict, Verdict

VERSION = 1
"""Of the JSON."""
_MARKS = {SAME: "=", DIFFERS: "≠", FOLLOWS: "↳", LEFT_OUT: "·"}
_CAUSES = 3  # are told of one cell


def sentence(verdict: Verdict) -> str:
    """The verdict in one line, the first difference in it."""
    runs = f"{verdict.runs} runs"
    under = "" if verdict.seed is None else f" under seed {verdict.seed}"
    if verdict.first is not None:
        cell = verdict.first
        return (
            f"{verdict.name}: NOT reproducible{under}: {cell.cell} is the first to differ in {runs}"
        )
    if verdict.first_unlike_saved is not None:
        cell = verdict.first_unlike_saved
        return (
            f"{verdict.name}: NOT as saved: its {runs}{under} agree with each other, but "
            f"{cell.cell} differs from the saved notebook"
        )
    compared = sum(cell.kind == SAME for cell in verdict.cells)
    saved = ", as saved" if verdict.compared_with_saved else ""
    return f"{verdict.name}: reproducible{under}: {_cells(compared)} the same in {runs}{saved}"


def _cells(count: int) -> str:
    return "1 cell" if count == 1 else f"{count} cells"


def text(verdict: Verdict) -> str:
    """The verdict, what differs first and why, and a line for each cell."""
    lines = [sentence(verdict)]
    for cell in _told(verdict):
        lines += ["", f"{cell.cell}:"]
        lines += [f"  {said}" for said in _lines(cell)]
    lines += ["", *_table(verdict), *(f"  {said}" for said in _notes(verdict))]
    return "\n".join(lines)


def _notes(verdict: Verdict) -> list[str]:
    """What was set aside or not compared in cells that are not told in full."""
    told = _told(verdict)
    return [
        f"note: cell {cell.cell.number}: {note}"
        for cell in verdict.cells
        if cell not in told and cell.kind != LEFT_OUT
        for note in cell.notes
    ]


def _told(verdict: Verdict) -> list[CellVerdict]:
    """The cells that are told in full: those that differ by themselves or from what was saved."""
    return [cell for cell in verdict.cells if cell.kind == DIFFERS or cell.saved]


def _lines(cell: CellVerdict) -> Iterable[str]:
    yield from cell.differences
    yield from cell.saved
    for number, cause in enumerate(cell.causes[:_CAUSES]):
        yield f"{'why' if number == 0 else 'or'}: {cause.said}"
        yield from (f"     {said}" for said in cause.evidence)
        if cause.remedy:
            yield f"     do: {cause.remedy}"
    if cell.kind == DIFFERS and not cell.causes:
        yield "why: nbseed saw no cause"
    yield from (f"note: {note}" for note in cell.notes)


def _table(verdict: Verdict) -> list[str]:
    rows = [(str(c.cell.number), _mark(c), _word(c), c.cell.first_line) for c in verdict.cells]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        f"  {number.rjust(widths[0])}  {mark}  {word.ljust(widths[2])}  {first}".rstrip()
        for number, mark, word, first in rows
    ]


def _mark(cell: CellVerdict) -> str:
    return "≠" if cell.saved else _MARKS[cell.kind]


def _word(cell: CellVerdict) -> str:
    if cell.kind == SAME and cell.saved:
        return "not as saved"
    if cell.kind == LEFT_OUT:
        return f"left out ({cell.notes[0]})"
    if cell.kind == FOLLOWS:
        return "differs after those above"
    if cell.kind == SAME and cell.moved:
        return f"same; moved {', '.join(cell.moved[:3])}{', …' if len(cell.moved) > 3 else ''}"
    return cell.kind


# -- JSON ------------------------------------------------------------------------------------------


def data(verdicts: Sequence[Verdict], troubles: Sequence[tuple[str, str]] = ()) -> dict[str, Any]:
    """All verdicts as JSON values.

    Parameters
    ----------
    troubles
        Notebooks of which nothing could be told, and why.
    """
    return {
        "version": VERSION,
        "nbseed": __version__,
        "notebooks": [
            *map(_of_notebook, verdicts),
            *({"name": name, "reproducible": None, "trouble": why} for name, why in troubles),
        ],
    }


def _of_notebook(verdict: Verdict) -> dict[str, Any]:
    return {
        "name": verdict.name,
        "reproducible": verdict.is_reproducible,
        "verdict": sentence(verdict),
        "runs": verdict.runs,
        "seed": verdict.seed,
        "compared_with_saved": verdict.compared_with_saved,
        "cells": [
            {
                "number": cell.cell.number,
                "first_line": cell.cell.first_line,
                "kind": cell.kind,
                "differences": list(cell.differences),
                "causes": [
                    {"said": c.said, "evidence": list(c.evidence), "remedy": c.remedy}
                    for c in cell.causes
                ],
                "saved": list(cell.saved),
                "moved": list(cell.moved),
                "notes": list(cell.notes),
            }
            for cell in verdict.cells
        ],
    }


# -- HTML ------------------------------------------------------------------------------------------

_STYLE = """
:root{color-scheme:light dark}
body{font:15px/1.5 system-ui,sans-serif;max-width:960px;margin:2rem auto;padding:0 1rem}
h1{font-size:1.3rem;margin:0 0 .3rem}h2{font-size:1.1rem;margin:2rem 0 .3rem;overflow-wrap:anywhere}
h3{font-size:1rem;margin:1.2rem 0 .2rem;overflow-wrap:anywhere}
code,pre{font:13px/1.45 ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace}
table{border-collapse:collapse;width:100%;margin:.6rem 0}
td,th{text-align:left;padding:2px 12px 2px 0;vertical-align:top;overflow-wrap:anywhere}
th{border-bottom:1px solid}tr+tr td{border-top:1px solid rgba(128,128,128,.3)}
td:first-child{text-align:right;width:2.5rem}td:nth-child(2){width:1.5rem;font-weight:700}
.bad{border-left:4px solid #d55e00;padding-left:10px}
.good{border-left:4px solid #2a7fbf;padding-left:10px}
.unknown{border-left:4px solid #888;padding-left:10px}
ul{margin:.2rem 0 .2rem 1.2rem;padding:0}small{opacity:.75}
figure{margin:.4rem 0;display:flex;gap:12px;flex-wrap:wrap}
figure img{max-width:calc(50% - 6px);background:#fff}
"""


def page(verdicts: Sequence[Verdict], troubles: Sequence[tuple[str, str]] = ()) -> str:
    """One page that needs nothing else; every text in it is escaped."""
    said = _summary(verdicts, troubles)
    body = [f"<h1>nbseed verify</h1><p>{escape(said)} <small>nbseed {__version__}</small></p>"]
    body += [
        f"<h2>{escape(name)}</h2><p class=unknown>? could not tell: {escape(why)}</p>"
        for name, why in troubles
    ]
    body += map(_section, verdicts)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>nbseed verify: {escape(said)}</title><style>{_STYLE}</style></head>"
        f"<body>{''.join(body)}</body></html>\n"
    )


def _summary(verdicts: Sequence[Verdict], troubles: Sequence[tuple[str, str]]) -> str:
    good = sum(verdict.is_reproducible for verdict in verdicts)
    parts = [f"{good} of {len(verdicts) + len(troubles)} notebooks reproducible"]
    if troubles:
        parts.append(f"{len(troubles)} could not be told")
    return ", ".join(parts)


def _section(verdict: Verdict) -> str:
    look = "good" if verdict.is_reproducible else "bad"
    mark = "=" if verdict.is_reproducible else "≠"
    told = "".join(map(_cell, _told(verdict)))
    rows = "".join(
        f"<tr><td>{c.cell.number}</td><td>{_mark(c)}</td><td>{escape(_word(c))}</td>"
        f"<td><code>{escape(c.cell.first_line)}</code></td></tr>"
        for c in verdict.cells
    )
    return (
        f"<h2>{escape(verdict.name)}</h2><p class={look}>{mark} {escape(sentence(verdict))}</p>"
        f"{told}<table><thead><tr><th>cell</th><th></th><th>in all runs</th><th>its first line</th>"
        f"</tr></thead><tbody>{rows}</tbody></table>"
        + "".join(f"<p><small>{escape(said)}</small></p>" for said in _notes(verdict))
    )


def _cell(cell: CellVerdict) -> str:
    items = "".join(f"<li>{_coded(said.strip())}</li>" for said in _lines(cell))
    figures = "".join(
        f"<figure>{_image(first, 'the first run')}{_image(second, 'a later run')}</figure>"
        for first, second in cell.pictures
    )
    return (
        f"<h3>{escape(str(cell.cell))}</h3><pre>{escape(cell.cell.source)}</pre>"
        f"<ul>{items}</ul>{figures}"
    )


def _coded(said: str) -> str:
    """A sentence with what stands between backticks as code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(said))


def _image(data: bytes, said: str) -> str:
    kind = "png" if data.startswith(b"\x89PNG") else "jpeg" if data[:2] == b"\xff\xd8" else "gif"
    source = base64.b64encode(data).decode()
    return f'<img alt="{said}" title="{said}" src="data:image/{kind};base64,{source}">'
