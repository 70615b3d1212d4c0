"""How what a variable holds differs from what it held, in a few short sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from .record import PARTS, Content, Text, parse

SENTENCES = 5
"""How many sentences are told of one variable."""
NAMED = 3
"""How many paths one sentence names."""

_MODE = ".train mode"
# What has no parts to name, by its kind.
_NOUNS = {
    **dict.fromkeys(("str", "bytes", "bytearray", "StringIO", "BytesIO"), "another text"),
    **dict.fromkeys(("int", "float", "complex"), "another number"),
    **dict.fromkeys(("list", "tuple", "set", "frozenset", "deque", "dict"), "other items"),
    **dict.fromkeys(("function", "code", "method", "class", "type"), "other code"),
    **dict.fromkeys(("Generator", "Random", "RandomState", "PCG64", "MT19937"), "another state"),
}
_ARTICLES = {"NoneType": "None", "bytes": "bytes", "ndarray": "an ndarray"}


def differences(before: Content, after: Content) -> list[str]:
    """Short sentences, most telling first, at most five; empty if both digests are the same."""
    if before.digest == after.digest:
        return []
    if before.kind != after.kind:
        return [f"{_a(after.kind)}, was {_a(before.kind)}"]
    told = _Told(before.parts, after.parts)
    return told.sentences() or [_NOUNS.get(after.kind, "other values")]


class _Told:
    """Gathers what differs, from the variable inwards; what is told covers what lies below it."""

    def __init__(self, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        self.old, self.new = old, new
        self.covered: set[str] = set()
        # By rank and text, the paths that it is true of.
        self.facts: dict[tuple[int, str], list[str]] = {}
        self.values: list[tuple[str, str]] = []
        self._known: set[tuple[Text, Text]] = set()
        self._changed = [p for p in dict.fromkeys([*new, *old]) if old.get(p) != new.get(p)]
        for path in self._changed:
            if path in old and path in new and not self._is_covered(path):
                self._look(path)
        self._come_and_gone()

    def sentences(self) -> list[str]:
        told = [(rank, _joined(text, paths)) for (rank, text), paths in self.facts.items()]
        if len(self.values) <= NAMED:
            told += [(3, f"{_name(path)} {text}".strip()) for path, text in self.values]
        told.sort(key=lambda pair: pair[0])
        return list(dict.fromkeys(text for _, text in told))[:SENTENCES]

    def _look(self, path: str) -> None:
        old, new = self.old[path], self.new[path]
        if path.endswith(_MODE):
            of = path.removesuffix(_MODE)
            self._tell(1, f"{new} mode, was {old} mode", of)
            if not of:
                self.covered.update(p for p in self._changed if p.endswith(_MODE))
            return
        one, two = parse(old), parse(new)
        if one is None or two is None or one.kind != two.kind:
            self.values.append((path, f"{_shown(new)}, was {_shown(old)}"))
            self.covered.add(path)
            if len(self.values) > NAMED:
                # Too many to be told one by one; the first few wait for this one.
                late = self.values if len(self.values) == NAMED + 1 else self.values[-1:]
                for other, _ in late:
                    self._tell(4, "other values", other)
            return
        if (one, two) in self._known:
            self.covered.add(path)  # one object under two names
            return
        self._known.add((one, two))
        words = list(_words(one.fields, two.fields))
        if words:
            self.covered.add(path)
            for word in words:
                self._tell(0 if not _name(path) else 2, word, path)
        elif one.bag and one.bag == two.bag and one.order != two.order:
            self.covered.add(path)
            rows = "rows" if one.kind == "DataFrame" else "items"
            self._tell(1, f"the same {rows} in another order", path)
        elif not any(_is_below(other, path) for other in self._changed):
            self._tell(4, _NOUNS.get(one.kind, "other values"), path)

    def _come_and_gone(self) -> None:
        for here, there, word in ((self.new, self.old, "new"), (self.old, self.new, "gone")):
            # Of a variable of many parts a path may be missing only because others came before.
            if len(there) >= PARTS:
                continue
            paths = [p for p in self._changed if p in here and p not in there]
            tops: list[str] = []
            for path in paths:
                if not self._is_covered(path) and not any(_is_below(path, top) for top in tops):
                    tops.append(path)
            if tops:
                verb = "is" if len(tops) == 1 else "are"
                self.facts[5, f"{_listed(tops)} {verb} {word}"] = [""]

    def _tell(self, rank: int, text: str, path: str) -> None:
        self.facts.setdefault((rank, text), []).append(path)

    def _is_covered(self, path: str) -> bool:
        return any(path == other or _is_below(path, other) for other in self.covered)


def _is_below(path: str, other: str) -> bool:
    return path != other and path.startswith(other) and path[len(other)] in ".[ <("


def _name(path: str) -> str:
    """What one types behind the variable's name, or says: the inside of an iterator has no name.

    >>> _name(".batches source 0"), _name("<i>"), _name(".step<rate>")
    ('.batches', 'its i', ".step's rate")
    """
    outer, variable, inner = _INSIDE.sub("", path).partition("<")
    if not variable or not inner.endswith(">"):
        return outer + variable + inner
    return f"{outer}'s {inner[:-1]}" if outer else f"its {inner[:-1]}"


_INSIDE = re.compile(r" (source \d+|loop( \d+)?|items)(?=$|[.[< ]).*")


def _listed(paths: list[str]) -> str:
    named = list(dict.fromkeys(_name(path) for path in paths))
    more = len(named) - NAMED
    return ", ".join(named[:NAMED]) + (f" and {more} more" if more > 0 else "")


def _joined(text: str, paths: list[str]) -> str:
    """A fact and where it holds: ``.bias dtype float64, was float32``, ``other code in .f``."""
    where = _listed(paths)
    if not where:
        return text
    single = len(set(map(_name, paths))) == 1
    return f"{where} {text}" if single and ", w" in text else f"{text} in {where}"


def _a(kind: str) -> str:
    return _ARTICLES.get(kind) or f"{'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}"


def _shown(text: str) -> str:
    pieces = parse(text)
    return text if pieces is None else _a(pieces.kind)


_COUNT = re.compile(r"(\d+)( of \d+)? ([a-z]+?)s?( left| taken)?")


def _words(old: tuple[str, ...], new: tuple[str, ...]) -> Iterator[str]:
    """``shape (8, 4), was (4, 4)``, ``10 items, were 7``."""
    for one, two in zip(old, new, strict=False):
        if one == two:
            continue
        first, second = _COUNT.fullmatch(one), _COUNT.fullmatch(two)
        if first and second and first[3] == second[3]:
            yield _counted(first, second)
        else:
            key, _, rest = one.partition(" ")
            yield f"{two}, was {rest if rest and two.startswith(f'{key} ') else one}"
    yield from new[len(old) :]
    yield from (f"no longer {field}" for field in old[len(new) :])


def _counted(old: re.Match[str], new: re.Match[str]) -> str:
    was = f"{'was' if old[1] == '1' else 'were'} {old[1]}"
    if new[4] != " left":
        return f"{new[0]}, {was}"
    way = "further on" if int(new[1]) < int(old[1]) else "not as far"
    verb = "is" if new[1] == "1" else "are"
    return f"{way}: {new[0].removesuffix(' left')} {verb} left, {was}"
