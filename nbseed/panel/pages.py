"""The panel's text and HTML. Every name in it is the user's, so every text is escaped here."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from html import escape

from .. import actions
from ..curves import Comparison, outcome_of
from ..sync import families, kind_of, spans
from .history import Column, History
from .rows import MANY, Now, Row
from .style import CSS, LINE, LIVE, THIN, swatch

_STATIC = 60  # columns of a page that cannot be scrolled by the panel


def framed(inner: str) -> str:
    """A piece of the panel, for the style sheet."""
    return f'<div class="nbseed">{inner}</div>'


def style(live: bool = False) -> str:
    """The style sheet; that of the live panel hides its stand-in."""
    return f"<style>{CSS}{LIVE if live else ''}</style>"


# -- the rows --------------------------------------------------------------------------------------


def heading(now: Now) -> str:
    """The seed in force, and whether devices are in step."""
    said = [actions.in_force(), *now.steps, *now.taken.notes]
    return framed("".join(f"<div>{escape(text)}</div>" for text in said))


def table(now: Now, beside: str | None = None) -> str:
    """A row a generator; `beside` is the checkpoint that they are compared with."""
    head = "<th class=s></th><th>generator</th><th>state</th><th>last move</th>"
    if beside is not None:
        head += f"<th>beside {escape(beside)}</th>"
    body, before = [], ""
    for row in now.rows:
        joint = row.group and row.group == before
        body.append(f"<tr{'' if joint else ' class=j'}>{_cells(row, not joint)}</tr>")
        before = row.group
    return framed(f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>")


def _cells(row: Row, first: bool) -> str:
    mark = row.mark
    model = f"<small>{escape(row.model)}</small>" if row.model else ""
    count = f"<small>{row.count} devices</small>" if row.count > 1 else ""
    title = f' title="all {row.group} are in the same state"' if first else ""
    group = f'<span class="g"{title}>{row.group}</span>' if row.group else ""
    compared = ""
    if row.differs is not None:
        compared = "<td><b class=d>≠ differs</b></td>" if row.differs else "<td>= same</td>"
    far = f"<small>{escape(row.far)}</small>" if row.far else ""
    return (
        f"<td class=s>{swatch(mark)}{swatch(mark[3:6])}</td>"
        f"<td>{escape(row.name)}{model}{count}</td>"
        f"<td><code>{mark[:8]}</code>{group}</td><td>{escape(row.by)}{far}</td>{compared}"
    )


# -- the ribbon ------------------------------------------------------------------------------------


def thin(names: Sequence[str]) -> set[str]:
    """The kinds of device of which there are so many that their lines are thin."""
    return {kind for kind, sisters in families(names).items() if len(sisters) > MANY}


def lines(names: Sequence[str]) -> str:
    """The names of the ribbon's lines, sisters together where their lines are thin."""
    narrow, said = thin(names), []
    for held in _runs(names, narrow):
        name = _joined(held)
        height = THIN * len(held) if kind_of(held[0]) in narrow else LINE
        style = f' style="height:{height}px"' if height != LINE else ""
        said.append(f'<span title="{escape(name)}"{style}>{escape(name)}</span>')
    return framed(f'<div class="l"><b>cell</b>{"".join(said)}</div>')


def _joined(held: Sequence[str]) -> str:
    return held[0] if len(held) == 1 else f"{kind_of(held[0])}:{spans(held)}"


def _runs(names: Sequence[str], narrow: set[str]) -> list[list[str]]:
    """Neighbours of one of some kinds of device together."""
    found: list[list[str]] = []
    for name in names:
        if found and kind_of(name) in narrow and kind_of(found[-1][-1]) == kind_of(name):
            found[-1].append(name)
        else:
            found.append([name])
    return found


def column(column: Column, names: Sequence[str]) -> str:
    """One cell of the ribbon: a swatch a generator, one for neighbours in the same state."""
    return framed(_column(column, names))


def _column(column: Column, names: Sequence[str]) -> str:
    said = column.label + (f": {column.word}" if column.word else "")
    narrow = thin(names)
    tiles, held = [], list[str]()
    for name in [*names, ""]:
        if held and not (name and _alike(column, held[-1], name)):
            tiles.append(_tile(column, held, kind_of(held[0]) in narrow))
            held = []
        held.append(name)
    while tiles and tiles[-1].startswith('<i class="e"'):
        tiles.pop()
    return (
        f'<div class="c" role="img" aria-label="{escape(said)}" title="{escape(said)}">'
        f"<b>{column.sign or '·'}</b>{''.join(tiles)}</div>"
    )


def _alike(column: Column, one: str, other: str) -> bool:
    kind = kind_of(one)
    return bool(kind) and kind == kind_of(other) and (
        (column.marks.get(one), one in column.parted)
        == (column.marks.get(other), other in column.parted)
    )  # fmt: skip


def _tile(column: Column, held: list[str], narrow: bool) -> str:
    mark = column.marks.get(held[0])
    height = len(held) * (THIN if narrow else LINE)
    if mark is None:
        return f'<i class="e" style="height:{height - 1}px"></i>'
    parted = held[0] in column.parted
    title = f"{column.label} {_joined(held)} {mark}{', parted' if parted else ''}"
    return swatch(mark, escape(title), height, parted)


# -- the losses ------------------------------------------------------------------------------------


def losses(picture: bytes, said: str, comparison: Comparison) -> str:
    """The overlay with its verdict, and the numbers as a table."""
    source = base64.b64encode(picture).decode()
    rows = [
        (
            str(curve.run.number),
            str(len(curve.values)),
            repr(float(curve.values[0])) if len(curve.values) else "",
            repr(float(curve.values[-1])) if len(curve.values) else "",
            " · ".join(outcome_of(curve)),
        )
        for curve in comparison.curves
    ]
    head = ("run", "steps", "first", "last", "")
    cells = "".join(f"<th>{text}</th>" for text in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>" for row in rows
    )
    return framed(
        f'<img alt="{escape(said)}" src="data:image/png;base64,{source}">'
        f"<details><summary>{escape(said)}: the numbers</summary>"
        f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table></details>"
    )


# -- what a button did -----------------------------------------------------------------------------


def status(said: str, good: bool = True) -> str:
    """The status line; a screen reader reads it out when it changes."""
    if not said:
        return framed('<div role="status"></div>')
    sign = "" if good else "not done: "
    look = "good" if good else "bad"
    return framed(f'<div role="status" class="{look}"><pre>{escape(sign + said)}</pre></div>')


# -- without a front end ---------------------------------------------------------------------------


def static(now: Now, history: History) -> str:
    """The same content as one page that nothing moves."""
    columns = list(history.columns)[-_STATIC:]
    ribbon = ""
    if columns:
        parts = "".join(_column(column, history.lines) for column in columns)
        ribbon = f'<div class="r">{lines(history.lines)}{parts}</div>'
    return f"{style()}{heading(now)}{table(now)}{framed(ribbon)}"


def saved(now: Now, history: History) -> str:
    """The same, as what a notebook shows that is opened later."""
    said = "as it was when it was shown; the cell shows the live panel when it is run again"
    return (
        f'<div class="nbseed-saved">{static(now, history)}{framed(f"<small>{said}</small>")}</div>'
    )


def text(now: Now) -> str:
    """The same for a terminal."""
    head = ("generator", "state", "last moved by", "draws")
    rows = [
        head,
        *((_named(row), row.mark[:8] + _lettered(row), row.by, row.far) for row in now.rows),
    ]
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return "\n".join([actions.in_force(), *now.steps, *_aligned(rows, widths), *now.taken.notes])


def _aligned(rows: Iterable[Sequence[str]], widths: Sequence[int]) -> list[str]:
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def _named(row: Row) -> str:
    return f"{row.name} ({row.model})" if row.model else row.name


def _lettered(row: Row) -> str:
    return f" {row.group}" if row.group else ""
