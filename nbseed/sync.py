"""Devices in step: which of them are sisters, and one's state given to the others."""

from __future__ import annotations

from collections.abc import Iterable

from . import generators
from .errors import StateError
from .snapshot import set_all


def kind_of(name: str) -> str:
    """``torch.cuda`` of ``torch.cuda:1``; "" for what is no device of several."""
    kind, colon, index = name.rpartition(":")
    return kind if colon and index.isdigit() and kind != "user" else ""


def families(names: Iterable[str]) -> dict[str, list[str]]:
    """The devices among some generators by their kind, where there are two or more of one."""
    found: dict[str, list[str]] = {}
    for name in names:
        if kind_of(name):
            found.setdefault(kind_of(name), []).append(name)
    return {kind: names for kind, names in found.items() if len(names) > 1}


def sync(source: str) -> list[str]:
    """Give the state of a device to its sisters, all or none; returns their names.

    Raises
    ------
    StateError
        If there is no such device, it has no sister, or one refuses the state; nothing has moved.
    """
    existing = generators.existing(()).generators
    known = [name for names in families(existing).values() for name in names]
    if source not in known:
        there = f"there are: {', '.join(known)}" if known else "no kind of device is there twice"
        raise StateError(f"sync takes the name of a device, got {source!r}; {there}")
    state = existing[source].get_state()
    sisters = [n for n in known if kind_of(n) == kind_of(source) and n != source]
    for name in sisters:
        existing[name].check_state(state)
    set_all([(existing[name], state) for name in sisters])
    return sisters


def spans(names: Iterable[str]) -> str:
    """Names of sisters in short: ``torch.cuda:0 to 2, 5``."""
    numbers = sorted(int(name.rpartition(":")[2]) for name in names)
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(
        str(low) if low == high else f"{low}{' to ' if high > low + 1 else ', '}{high}"
        for low, high in parts
    )
