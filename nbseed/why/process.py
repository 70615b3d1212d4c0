"""The process: what differs between two kernels, and what will differ after a restart."""

from __future__ import annotations

import re
from collections.abc import Mapping

from .. import signs
from .cause import Cause, Pair, listed, place
from .seeds import made_of

# What the value of such a variable opens must not stand in a notebook.
_SECRET = re.compile(r"key|token|secret|passw|auth|credential|cookie|dsn|url", re.IGNORECASE).search


def find(pair: Pair) -> list[Cause]:
    """Files, folders and environment variables that the code names, and that have changed."""
    before, now = pair.before.around, pair.now.around
    changed = [name for name in now if name in before and before[name] != now[name]]
    new = [name for name in now if name not in before]
    gone = [name for name in before if name not in now]
    found = []
    if changed:
        found.append(
            Cause(
                66,
                f"the {listed(changed, 2)} was changed",
                tuple(f"{name}: {_content(before, now, name)}" for name in changed),
                "read what the first run has read: a copy under another name, or set it back",
            )
        )
    if new or gone:
        first = (new or gone)[0]
        found.append(
            Cause(
                58,
                f"the {first} was {'not there before' if new else 'there before'}",
                tuple([f"{n}: new" for n in new] + [f"{n}: gone" for n in gone]),
                "remove what an earlier run has left, or read it in both runs",
            )
        )
    return found


def _content(before: Mapping[str, str], now: Mapping[str, str], name: str) -> str:
    if name.startswith("environment"):
        if _SECRET(name):
            return "another value"
        return f"{now[name]}, was {before[name]}"
    if name == "working directory":
        return "another folder"
    return "another content" if name.startswith("file ") else "other entries"


def perhaps(pair: Pair) -> list[Cause]:
    """What may be the cause where nothing better was found: orders, addresses, the clock."""
    found = []
    for function, text in pair.texts().items():
        known = signs.signs(text)
        for sign in (*known.sets, *known.by_address, *known.folders):
            found.append((function, sign, f"{sign.text} takes an order that nothing fixes"))
        for sign in known.seeds:
            if sign.kind == signs.HASH:
                found.append((function, sign, f"{sign.text} takes its seed from {sign.kind}"))
        for name, sign in known.derived.items():
            if name not in known.measures:
                found.append((function, sign, f"{sign.kind} goes into {name}"))
    if not found:
        return []
    function, sign, said = found[0]
    return [
        Cause(
            44,
            f"{said} ({place(sign.line, function)})",
            tuple(f"{place(s.line, f)}: {what}" for f, s, what in found),
            "`sorted(...)` fixes an order; a number in place of what the machine gives",
        )
    ]


def after_restart(pair: Pair) -> list[str]:
    """What may come out otherwise in a new kernel or on another machine, though not in this one."""
    said = []
    fixed = pair.now.switches.get("PYTHONHASHSEED") not in (None, "random")
    for function, sign in made_of(pair, {signs.HASH, signs.PROCESS}):
        if sign.kind == signs.HASH and fixed:
            continue
        remedy = " (PYTHONHASHSEED is not set)" if sign.kind == signs.HASH else ""
        said.append(
            f"{place(sign.line, function)}: {sign.text} takes its seed from {sign.kind}{remedy}"
        )
    for function, text in pair.texts().items():
        found = signs.signs(text)
        if not fixed:
            said += [
                f"{place(s.line, function)}: {s.text} takes the order of a set, which for text and "
                "objects is another in each process; sorted(...) fixes it"
                for s in found.sets
            ]
        said += [
            f"{place(s.line, function)}: {s.text} lists in the order that the file system keeps; "
            "sorted(...) fixes it"
            for s in found.folders
        ]
    return said
