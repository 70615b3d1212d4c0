"""Which parts of a cell's outputs count, and where two lists of outputs part.

Text counts exactly: printed text, plain text, HTML, Markdown, LaTeX, SVG, JSON, and the type and
text of errors. Pictures count by their pixels. What differs in each process or with the clock is
set aside when two texts differ, by the rules in `VOLATILE`; a progress bar counts as it was left.
What nbseed itself shows, execution counts and tracebacks do not count, and widgets cannot be
compared without their front end: that is said.
"""

from __future__ import annotations

import base64
import io
import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..report import MIME

_TIME = r"\d+(?:[.,]\d+)?(?:e-?\d+)?\s?(?:ns|[µμu]s|ms|s|secs?|seconds?|min|minutes?|hours?)\b"
_CLOCK = r"\d\d?:\d\d(?::\d\d(?:\.\d+)?)?"

VOLATILE: tuple[tuple[str, re.Pattern[str], str], ...] = tuple(
    (what, re.compile(pattern, re.MULTILINE), into)
    for what, pattern, into in (
        ("addresses", r"\b0x[0-9a-fA-F]{5,16}\b", "0x…"),
        ("process numbers in file names", r"\bipykernel_\d+[/\\]\d+\.py", "ipykernel_…"),
        ("random names of temporary files", r"\btmp[a-z0-9_]{8}\b", "tmp…"),
        ("UUIDs", r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", "…"),
        ("random identifiers in HTML and SVG", r"\bT_[0-9a-f]{5}(?=[_\" ])", "T_…"),
        ("random identifiers in HTML and SVG", r"\bsk-container-id-\d+", "sk-…"),
        ("random identifiers in HTML and SVG", r"(?<=[\"#])[mpi][0-9a-f]{10}\b", "…"),
        ("timings of %time and %timeit", r"^(?:CPU times|Wall time): .*$", "…"),
        ("timings of %time and %timeit", r"^.* per loop \(mean ± std\. dev\..*$", "…"),
        ("rates of progress bars", r"\[\d+:\d+(?::\d+)?<[^\]]*\]", "[…]"),
        ("rates of progress bars", r"\b\d+(?:\.\d+)?\s?(?:it|s)/(?:s|it)\b", "…"),
        (
            "dates",
            r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?",
            "…",
        ),
        ("times of day", r"\b\d\d?:\d\d:\d\d(?:\.\d+)?\b", "…"),
        ("durations", rf"(?<![\w.]){_TIME}(?:/\w+)?", "…"),
    )
)
"""What is set aside where two texts differ: what it is, its pattern, and what stands for it."""

_PICTURES = ("image/png", "image/jpeg", "image/gif")
_WIDGET = "application/vnd.jupyter.widget-view+json"
_OURS = '<div class="nbseed-'  # tables, answers, the panel
_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


@dataclass(frozen=True)
class Part:
    """One thing that a cell has shown.

    Attributes
    ----------
    what
        ``printed text``, ``picture``, ``text/html``, ``error``.
    value
        Its text, or the bytes of a picture.
    """

    what: str
    value: str | bytes


@dataclass(frozen=True)
class Parted:
    """Where two lists of outputs part.

    Attributes
    ----------
    said
        In words.
    pictures
        The two pictures, if it is pictures that differ.
    """

    said: str
    pictures: tuple[bytes, bytes] | None = None


@dataclass(frozen=True)
class Compared:
    """Two lists of outputs beside each other.

    Attributes
    ----------
    parted
        Each place where they differ.
    set_aside
        Which volatile parts differed, and were not counted.
    not_compared
        What cannot be compared.
    """

    parted: tuple[Parted, ...] = ()
    set_aside: tuple[str, ...] = ()
    not_compared: tuple[str, ...] = ()


def compare(first: Sequence[Mapping[str, Any]], second: Sequence[Mapping[str, Any]]) -> Compared:
    """Two cells' outputs, as a notebook's file holds them."""
    before, now = parts(first), parts(second)
    parted: list[Parted] = []
    aside: list[str] = []
    for number, (one, other) in enumerate(itertools.zip_longest(before, now), 1):
        if one == other:
            continue
        if one is None or other is None or one.what != other.what:
            parted.append(Parted(f"output {number} was {_named(one)}, then {_named(other)}"))
            break  # behind it everything is shifted
        if isinstance(one.value, bytes) and isinstance(other.value, bytes):
            said = _pixels(one.value, other.value)
            if said:
                parted.append(Parted(f"{one.what}: {said}", (one.value, other.value)))
            continue
        found = _texts(str(one.value), str(other.value))
        if isinstance(found, str):
            parted.append(Parted(f"{one.what}, {found}"))
        else:
            aside += found
    widgets = "widgets" if any(_WIDGET in o.get("data", {}) for o in (*first, *second)) else ""
    return Compared(tuple(parted), tuple(dict.fromkeys(aside)), (widgets,) if widgets else ())


def parts(outputs: Iterable[Mapping[str, Any]]) -> list[Part]:
    """What counts of a cell's outputs, in order; text of one stream is one part."""
    found: list[Part] = []
    for output in outputs:
        kind = output.get("output_type")
        if kind == "stream":
            what = "printed text" if output.get("name") == "stdout" else "text of stderr"
            text = _joined(output.get("text", ""))
            if found and found[-1].what == what:
                text = str(found.pop().value) + text
            found.append(Part(what, text))
        elif kind == "error":
            said = f"{output.get('ename')}: {output.get('evalue')}"
            found.append(Part("error", _COLOURS.sub("", said)))
        elif kind in ("display_data", "execute_result"):
            found += _shown(output.get("data", {}))
    return [
        Part(part.what, as_left(part.value)) if isinstance(part.value, str) else part
        for part in found
    ]


def _shown(data: Mapping[str, Any]) -> list[Part]:
    if MIME in data or _WIDGET in data or _joined(data.get("text/html", "")).startswith(_OURS):
        return []
    found: list[Part] = []
    for kind in sorted(data):
        if kind in _PICTURES:
            found.append(Part("picture", base64.b64decode(_joined(data[kind]))))
        elif kind.startswith("text/") or kind in ("image/svg+xml", "application/javascript"):
            found.append(Part(kind, _joined(data[kind])))
        else:  # application/json and the kinds of other libraries
            found.append(Part(kind, json.dumps(data[kind], sort_keys=True, default=str)))
    return found


def _joined(text: Any) -> str:
    return "".join(text) if isinstance(text, list) else str(text)


def as_left(text: str) -> str:
    """Text as it is left on the screen: a carriage return begins the line anew."""
    lines = []
    for line in text.split("\n"):
        shown = ""
        for piece in line.split("\r"):
            shown = piece + shown[len(piece) :]
        lines.append(shown)
    return "\n".join(lines)


def _texts(first: str, second: str) -> str | list[str]:
    """Where two texts part; or what was set aside, if that is all."""
    aside = []
    for what, pattern, into in VOLATILE:
        if first == second:
            break
        one, other = pattern.sub(into, first), pattern.sub(into, second)
        if pattern.findall(first) != pattern.findall(second):
            aside.append(what)
        first, second = one, other
    if first == second:
        return aside
    before, now = first.splitlines(), second.splitlines()
    for number, (one, other) in enumerate(itertools.zip_longest(before, now, fillvalue=""), 1):
        if one != other:
            return f"line {number}: {_around(one, other)!r}, then {_around(other, one)!r}"
    return "its end"  # a line break


def _around(line: str, other: str, most: int = 60) -> str:
    """A line, shortened around the place where it parts from another."""
    if len(line) <= most:
        return line
    at = next((i for i, pair in enumerate(zip(line, other, strict=False)) if len(set(pair)) > 1), 0)
    start = max(0, min(at - most // 3, len(line) - most))
    cut = line[start : start + most]
    return f"{'…' if start else ''}{cut}{'…' if start + most < len(line) else ''}"


def _named(part: Part | None) -> str:
    return "nothing" if part is None else part.what


def _pixels(first: bytes, second: bytes) -> str:
    """How two pictures differ; "" if all their pixels are equal."""
    from PIL import Image

    try:
        one, other = (
            Image.open(io.BytesIO(data), formats=("PNG", "JPEG", "GIF")).convert("RGBA")
            for data in (first, second)
        )
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return "" if first == second else "other bytes, and no picture that can be read"
    if one.size != other.size:
        sizes = [f"{width} x {height}" for width, height in (one.size, other.size)]
        return f"{sizes[0]} pixels, then {sizes[1]}"
    before, now = memoryview(one.tobytes()).cast("I"), memoryview(other.tobytes()).cast("I")
    if before == now:
        return ""
    count = sum(a != b for a, b in zip(before, now, strict=True))
    return f"{count:,} of {len(now):,} pixels differ"
