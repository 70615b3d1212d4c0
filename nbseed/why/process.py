"""The process: what differs between two kernels, and what will differ after a restart."""

from __future__ import annotations

from .. import signs
from .cause import Pair, place
from .seeds import made_of


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
