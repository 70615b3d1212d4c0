"""Variables that were not what they were when the first run met them."""

from __future__ import annotations

from ..content import Content, differences
from ..content.record import parse
from ..unreached import PERSISTENT
from .cause import Cause, Pair, listed

CODE = {"function", "type", "method", "partial", "_lru_cache_wrapper", "ABCMeta"}
"""Kinds of variables that are code: the room of code asks for them."""
_PLAIN = {"int", "float", "bool", "str", "NoneType", "complex", "bytes"}
_NOT_FINITE = {text: f"float('{text}')" for text in ("nan", "inf", "-inf")}
_ITERATORS = {
    "generator", "enumerate", "zip", "map", "filter", "count", "cycle", "chain", "islice",
    "reversed",
    "product", "permutations", "combinations", "reader", "accumulate", "takewhile", "dropwhile",
    "starmap", "zip_longest", "groupby", "DictReader",
}  # fmt: skip
_NO_COPIES = {"Queue", "SimpleQueue", "LifoQueue", "PriorityQueue", "Connection", "Cursor"}
_FILES = ("TextIOWrapper", "BufferedReader", "BufferedRandom", "FileIO", "BytesIO", "StringIO")


def find(pair: Pair) -> list[Cause]:
    """One cause for all variables, the plainest differences first."""
    # Those of a loader with persistent workers say nothing that its workers do not.
    persistent = {path for path, kind in pair.now.unreached.items() if kind == PERSISTENT}
    changed = [
        (name, before, now)
        for name, before, now in both(pair)
        if before.digest != now.digest and now.kind not in CODE and name not in persistent
    ]
    if not changed:
        return _appeared(pair)
    changed.sort(key=lambda entry: entry[2].kind not in _PLAIN)
    names = [name for name, *_ in changed]
    first, before, now = changed[0]
    told = differences(before, now)
    if len(names) == 1 and now.kind in _PLAIN and told:
        said = f"{first} is {told[0]}"
    else:
        verb = "was" if len(names) == 1 else "were"
        said = f"{listed(names)} {verb} not what run {pair.base.number} met"
    return [
        Cause(
            weight=95,
            said=said,
            evidence=tuple(_evidence(*entry) for entry in changed),
            remedy=_remedy(pair, changed),
        )
    ]


def _appeared(pair: Pair) -> list[Cause]:
    """Names that were a built-in's, a module's or nobody's in the first run."""
    before, now = pair.before.met, pair.now.met
    names = [name for name in now.found if name not in {*before.found, *before.left_out}]
    if not names:
        return []
    return [
        Cause(
            92,
            f"{listed(names)} {'was' if len(names) == 1 else 'were'} none of the notebook's "
            f"variables in run {pair.base.number}",
            tuple(f"{name} is a {now.found[name].kind} now" for name in names),
            f"`del {', '.join(names)}`, or run the cell that makes it before run 1, with `--reset`",
        )
    ]


def both(pair: Pair) -> list[tuple[str, Content, Content]]:
    """The variables that both runs have looked into, with what they held."""
    before, now = pair.before.met.found, pair.now.met.found
    return [(name, before[name], now[name]) for name in now if name in before]


def _is_iterator(kind: str) -> bool:
    return kind in _ITERATORS or kind.endswith(("iterator", "Iterator", "Iter"))


def _evidence(name: str, before: Content, now: Content) -> str:
    told = differences(before, now) or ["another content"]
    return f"{name} ({now.kind}): {'; '.join(told)}"


def _remedy(pair: Pair, changed: list[tuple[str, Content, Content]]) -> str:
    said = []
    live = [n for n, _, now in changed if _is_iterator(now.kind)]
    modules = [n for n, _, now in changed if now.kind == "module"]
    files = [n for n, _, now in changed if now.kind in _FILES]
    plain = [(n, before) for n, before, now in changed if now.kind in _PLAIN]
    for name, before in plain[:2]:
        if before.kind in _PLAIN:
            text = before.parts.get("", "")
            if text and parse(text) is None:  # else it is too long to be shown
                said.append(f"`{name} = {_NOT_FINITE.get(text, text)}`")
    inside = [n for n, _, now in changed if now.kind in _NO_COPIES]
    carry = [n for n, *_ in changed if n not in {*live, *files, *modules, *inside}]
    if carry:
        it = "it" if len(carry) == 1 else "them"
        said.append(
            f"`%%rngcheckpoint {pair.name} --with {','.join(carry)}` puts {it} back before each "
            f"run (make {it} anew first, and add `--reset` once)"
        )
    if modules:
        said.append(f"`importlib.reload({modules[0]})` at the head of the cell")
    if inside:
        said.append(f"make {listed(inside)} inside the cell: it cannot be copied")
    if live:
        said.append(f"make {listed(live)} inside the cell: a live iterator cannot go back")
    if files:
        said.append(f"open {listed(files)} inside the cell, or `{files[0]}.seek(0)`")
    return "; or ".join(said)
