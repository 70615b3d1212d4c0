"""Variables that were not what they were when the first run met them."""

from __future__ import annotations

from ..content import Content, differences
from ..unreached import PERSISTENT
from .cause import Cause, Pair, listed

CODE = {"function", "type", "method", "partial", "_lru_cache_wrapper", "ABCMeta"}
"""Kinds of variables that are code: the room of code asks for them."""
_PLAIN = {"int", "float", "bool", "str", "NoneType", "complex", "bytes"}
_ITERATORS = (
    "iterator", "generator", "Iter", "enumerate", "zip", "map", "filter", "count", "cycle",
)  # fmt: skip
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
        return []
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


def both(pair: Pair) -> list[tuple[str, Content, Content]]:
    """The variables that both runs have looked into, with what they held."""
    before, now = pair.before.met.found, pair.now.met.found
    return [(name, before[name], now[name]) for name in now if name in before]


def _evidence(name: str, before: Content, now: Content) -> str:
    told = differences(before, now) or ["another content"]
    return f"{name} ({now.kind}): {'; '.join(told)}"


def _remedy(pair: Pair, changed: list[tuple[str, Content, Content]]) -> str:
    said = []
    live = [n for n, _, now in changed if now.kind.endswith(_ITERATORS)]
    files = [n for n, _, now in changed if now.kind in _FILES]
    plain = [(n, before) for n, before, now in changed if now.kind in _PLAIN]
    for name, before in plain[:2]:
        if before.kind in _PLAIN:
            said.append(f"{name} = {before.parts.get('', '...')}")
    carry = [n for n, *_ in changed if n not in {*live, *files}]
    if carry:
        it = "it" if len(carry) == 1 else "them"
        said.append(
            f"%%rngcheckpoint {pair.name} --with {','.join(carry)} puts {it} back before each run "
            f"(make {it} anew first, and add --reset once)"
        )
    if live:
        said.append(f"make {listed(live)} inside the cell: a live iterator cannot go back")
    if files:
        said.append(f"open {listed(files)} inside the cell, or {files[0]}.seek(0)")
    return "; or ".join(said)
