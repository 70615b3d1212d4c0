"""The code changed: the text of the cell, or of a function of the notebook that it calls."""

from __future__ import annotations

import ast
import difflib

from ..content import Content, differences
from .cause import Cause, Pair, cut, listed
from .variables import CODE, both


def find(pair: Pair) -> list[Cause]:
    """One cause for the cell's text, one for the functions."""
    found = []
    if not _same(pair.base.code, pair.run.code):
        found.append(
            Cause(
                98,
                "the cell's code was changed",
                tuple(_edits(pair.base.code, pair.run.code)),
                "compare runs of one code: another variant, another NAME (`%%rngcheckpoint NAME`)",
            )
        )
    changed = [
        name
        for name, before, now in both(pair)
        if before.digest != now.digest and _is_rewritten(pair, name, before, now)
    ]
    if changed:
        evidence = []
        for name in changed:
            old, new = (seen.functions.get(name, "") for seen in (pair.before, pair.now))
            evidence += [f"{name}: {edit}" for edit in _edits(old, new) or [_OTHER]]
        found.append(
            Cause(
                96,
                f"{listed(changed)} {'was' if len(changed) == 1 else 'were'} changed",
                tuple(evidence),
                "run the first definition again, or `--reset` to start from the new one",
            )
        )
    inside = [
        (name, before, now)
        for name, before, now in both(pair)
        if now.kind in CODE and before.digest != now.digest and name not in changed
    ]
    if inside:
        names = [name for name, *_ in inside]
        found.append(
            Cause(
                93,
                f"{listed(names)} kept something from an earlier call",
                tuple(
                    f"{name} ({now.kind}): {'; '.join(differences(before, now)) or 'what it keeps'}"
                    for name, before, now in inside
                ),
                _remedy(names, [now.kind for *_, now in inside]),
            )
        )
    return found


# What `differences` says of a function whose text is not known, of a module of the user's say.
_OTHER = "other code"


def _is_rewritten(pair: Pair, name: str, before: Content, now: Content) -> bool:
    if name in pair.now.functions:
        return not _same(pair.before.functions.get(name, ""), pair.now.functions[name])
    return now.kind in CODE and differences(before, now) == [_OTHER]


def draws(pair: Pair) -> list[Cause]:
    """That the cell drew another number of times.

    It follows from something else, but may be all that is known.
    """
    evidence = draw_lines(pair)
    if not evidence:
        return []
    return [
        Cause(
            52,
            f"another number of draws ({evidence[0]})",
            tuple(evidence),
            "look for what decides how often the cell draws: a length, a condition, a cache",
        )
    ]


def draw_lines(pair: Pair) -> list[str]:
    """``torch.cpu: 672 words, run 1: 640 words`` for each generator that differs."""
    said = []
    base = pair.base.number
    for name, now in pair.now.draws.items():
        before = pair.before.draws.get(name)
        since, then = pair.now.since.get(name), pair.before.since.get(name)
        if since and then and since != then:
            said.append(
                f"{name}: {since[1]} after seed {since[0]}, "
                f"run {base}: {then[1]} after seed {then[0]}"
            )
        elif before is not None and before != now and not (since and then):
            said.append(f"{name}: {now}, run {base}: {before}")
    return said


def _remedy(names: list[str], kinds: list[str]) -> str:
    if "type" in kinds:
        name = names[kinds.index("type")]
        return f"set what the class {name} keeps back at the head of the cell, or define it there"
    if "_lru_cache_wrapper" in kinds:
        name = names[kinds.index("_lru_cache_wrapper")]
        return f"`{name}.cache_clear()` at the head of the cell"
    return f"make {listed(names)} anew before each run"


def _same(first: str, second: str) -> bool:
    """Whether two texts are the same code: comments and blank lines do not count."""
    if first == second:
        return True
    try:
        return ast.dump(ast.parse(first)) == ast.dump(ast.parse(second))
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last: a parser too deep
        return first.split() == second.split()


def _edits(first: str, second: str, most: int = 4) -> list[str]:
    """The lines that differ, as ``now: lr = 0.2 (was: lr = 0.1)``."""
    old, new = ([" ".join(line.split()) for line in text.splitlines()] for text in (first, second))
    said = []
    for tag, i, j, k, m in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        was, now = "; ".join(filter(None, old[i:j])), "; ".join(filter(None, new[k:m]))
        if was and now:
            said.append(f"now {cut(now)} (was {cut(was)})")
        elif was or now:
            said.append(f"new: {cut(now)}" if now else f"gone: {cut(was)}")
    if not said and first != second:  # the lines are the same but for their blanks
        old, new = ([n for n in text.splitlines() if n.strip()] for text in (first, second))
        pairs = zip(old, new, strict=True)
        said = [f"other blanks: {cut(two.strip())}" for one, two in pairs if one != two]
        said = said or ["other blank lines"]
    more = [f"and {len(said) - most} more places"] if len(said) > most else []
    return said[:most] + more
