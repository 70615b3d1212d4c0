"""Going back: the generators of a snapshot and the variables that are carried with it, or none."""

from __future__ import annotations

import itertools
from collections.abc import MutableMapping
from typing import Any

from . import carried
from .carried import Carried
from .snapshot import Restored, Snapshot, restore


def carry(
    namespace: MutableMapping[str, Any], names: tuple[str, ...], taken: Snapshot, notes: list[str]
) -> Carried | None:
    """Copies of variables, None without names; what they take and lack is added to `notes`.

    Making a copy may run the user's code; no generator has moved by it.
    """
    if not names:
        return None
    try:
        kept = carried.capture(namespace, names)
    finally:
        restore(taken, strict=False)
    notes.append(f"kept with it: {', '.join(names)} ({carried.shown(kept.size)})")
    notes += kept.notes
    return kept


def rewind(
    taken: Snapshot,
    kept: Carried | None,
    namespace: MutableMapping[str, Any],
    names: tuple[str, ...],
) -> Restored:
    """Put back the variables and the generators: all or nothing."""
    plan = None
    if kept is not None:
        plan = carried.check(kept, namespace)
        plan.apply()
    try:
        return restore(taken, strict=False, names=names)
    except BaseException:
        if plan is not None:
            plan.undo()
        raise


def variables(taken: Snapshot) -> list[str]:
    """The variables that the user's objects in a snapshot hang from."""
    names = [name.removeprefix("user:") for name in taken.states if name.startswith("user:")]
    heads = ["".join(itertools.takewhile(lambda c: f"_{c}".isidentifier(), n)) for n in names]
    return list(dict.fromkeys(heads))


def left_out(restored: Restored) -> list[str]:
    """What a restore could not do, a sentence each."""
    notes = [f"not rewound: {reason}" for reason in restored.unfit.values()]
    if restored.missing:
        notes.append(f"not rewound, no longer there: {', '.join(restored.missing)}")
    if restored.uncovered:
        notes.append(f"not in the checkpoint: {', '.join(restored.uncovered)}")
    return notes
