"""Seeds: made of the clock, set anew by a library, given another value."""

from __future__ import annotations

import re
from typing import TypeAlias

from .. import signs
from ..recording import Observed
from ..watch import Call
from .cause import Cause, Pair, listed, place, times

_Key: TypeAlias = tuple[str, int, str, str]

# A function whose name says that it seeds is called to seed.
_SAYS_SO = re.compile(r"seed|determin|reproduc|random_state|rng", re.IGNORECASE).search


def find(pair: Pair) -> list[Cause]:
    """Seeds that differ, seeds made of what changes, and seeds that one run alone has set."""
    found = []
    before, now = _seeds(pair.before.calls), _seeds(pair.now.calls)
    other = [key for key in now if key in before and before[key].digest != now[key].digest]
    # Of the cell's own lines the watch knows better whether the seeds were the same.
    same = {now[k].site.line for k in now if k in before} - {now[k].site.line for k in other}
    kinds = {signs.CLOCK, signs.ADDRESS, signs.ENTROPY}
    made = [(f, sign) for f, sign in made_of(pair, kinds) if f or sign.line not in same]
    if not made:
        made = _on_the_lines(pair, [now[key] for key in other])
    alone = _alone_in_one(pair, before, now)
    if made:
        function, sign = made[0]
        at = place(sign.line, function)
        found.append(
            Cause(
                97,
                f"a seed is made of {sign.kind} ({at})",
                tuple(f"{place(s.line, f)}: {s.text} takes its seed from {s.kind}" for f, s in made)
                + tuple(_other(before[key], now[key]) for key in other),
                "give it a number, such as 3",
            )
        )
    elif other:
        first = now[other[0]]
        found.append(
            Cause(
                91,
                f"{first.what} got another seed{_at(first)}",
                tuple(_other(before[key], now[key]) for key in other),
                "seed with the same number in both runs",
            )
        )
    calls = (*pair.now.calls, *pair.before.calls)
    found += _from_the_system(pair, [call for call in calls if call.kind == "entropy"])
    if alone:
        call, in_now = alone[0]
        who = f" by {call.site.through}" if call.site.through else ""
        runs = f"run {pair.run.number if in_now else pair.base.number}"
        found.append(
            Cause(
                94 if call.site.importing else 80,
                f"{call.stream} was re-seeded{who}{_at(call)} in {runs} only",
                tuple(_alone(call, in_now, pair) for call, in_now in alone),
                _import_remedy(call),
            )
        )
    return found


def _on_the_lines(pair: Pair, calls: list[Call]) -> list[tuple[str, signs.Sign]]:
    """The lines of seeds that differ, if the clock or the like goes into what they call."""
    known = signs.signs(pair.now.source).lines
    return [
        ("", signs.Sign(call.site.line, call.site.text, known[call.site.line]))
        for call in calls
        if call.site.line in known
    ]


def _from_the_system(pair: Pair, seen: list[Call]) -> list[Cause]:
    """``g.seed()`` of a torch generator: it cannot be watched, only read."""
    lines, whats = {call.site.line for call in seen}, {call.what for call in seen}
    found = [
        (function, sign)
        for function, text in pair.texts().items()
        for sign in signs.signs(text).reseeds
        if (sign.text not in whats if function else sign.line not in lines)
    ]
    if not found:
        return []
    function, sign = found[0]
    return [
        Cause(
            84,
            f"{sign.text} without a seed ({place(sign.line, function)})",
            tuple(
                f"{place(s.line, f)}: {s.text} takes a seed from the operating system, "
                "as Generator.seed() of torch does"
                for f, s in found
            ),
            f"`{sign.text.removesuffix('seed()')}manual_seed(3)`",
        )
    ]


def made_of(pair: Pair, kinds: set[str]) -> list[tuple[str, signs.Sign]]:
    """Places in the cell and its functions where a seed is made of one of some kinds of source."""
    return [
        (function, sign)
        for function, text in pair.texts().items()
        for sign in signs.signs(text).seeds
        if sign.kind in kinds
    ]


def over_the_users(observed: Observed) -> list[Call]:
    """Seeds that a function or library sets over the one that the cell itself has set before.

    Those of a function whose name says that it seeds are left out, and of one that puts the stream
    back. What is drawn after such a seed
    is the same under every seed of the user's.
    """
    own: dict[str, Call] = {}
    found = []
    for call in observed.calls:
        if call.kind != "seed" or _name(call.stream) in observed.since:
            continue
        if not call.site.through:
            own.setdefault(call.stream, call)
        elif (
            call.stream in own
            and call.values != own[call.stream].values
            and not _SAYS_SO(call.site.through)
        ):
            found.append(call)
    return found


def _name(stream: str) -> str:
    return "torch.cpu" if stream == "torch" else stream


def reseeded(call: Call) -> str:
    """One sentence on such a seed."""
    return (
        f"{call.site.through} re-seeds {call.stream} {times(call.count)}{_at(call)}: "
        f"{call.site.call or call.what}; what is drawn after it does not depend on your seed"
    )


def _seeds(calls: tuple[Call, ...]) -> dict[_Key, Call]:
    return {
        (call.what, call.site.line, call.site.through, call.site.call): call
        for call in calls
        if call.kind == "seed"
    }


def _alone_in_one(
    pair: Pair, before: dict[_Key, Call], now: dict[_Key, Call]
) -> list[tuple[Call, bool]]:
    """Seeds that one run alone has set, and whether it is the later one.

    An edit moves lines: the same call with the same seeds on another line is no other one.
    """
    alone = [(now[key], True) for key in now if key not in before]
    alone += [(before[key], False) for key in before if key not in now]
    if pair.base.code == pair.run.code:
        return alone
    moved = {_but_line(c) for c, is_now in alone if is_now}
    moved &= {_but_line(c) for c, is_now in alone if not is_now}
    return [(call, is_now) for call, is_now in alone if _but_line(call) not in moved]


def _but_line(call: Call) -> tuple[str, str, str, int]:
    return call.what, call.site.through, call.site.call, call.digest


def _at(call: Call) -> str:
    return f" ({place(call.site.line)})" if call.site.line else ""


def _other(before: Call, now: Call) -> str:
    return (
        f"{now.what} got {listed(list(now.values))}, before {listed(list(before.values))}{_at(now)}"
    )


def _alone(call: Call, in_now: bool, pair: Pair) -> str:
    has, lacks = (pair.run, pair.base) if in_now else (pair.base, pair.run)
    where = f"{call.site.call or call.what}{_at(call)}"
    who = f" in {call.site.through}" if call.site.through else ""
    return (
        f"run {has.number} re-seeded {call.stream} {times(call.count)}: {where}{who}; "
        f"run {lacks.number} did not"
    )


def _import_remedy(call: Call) -> str:
    if call.site.importing:
        module = call.site.importing
        return f"`import {module}` in a cell above, before the checkpoint is taken; then `--reset`"
    return f"seed {call.stream} after that call, or not at all in it"
