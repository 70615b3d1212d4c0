"""What a magic or a button does to the generators and checkpoints: each does it, and says so."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from . import generators, seeding, snapshot_file
from .checkpoints import CHECKPOINTS
from .errors import CheckpointError, StateError
from .imports import is_imported
from .rewinding import left_out
from .snapshot import Snapshot, plan, snapshot
from .snapshot import restore as restore_snapshot
from .sync import kind_of, spans, sync


def seed(
    number: int,
    deterministic: bool = False,
    each_cell: bool = False,
    strict: bool = False,
    pin_entropy: bool = False,
    cell: str | None = None,
) -> str:
    """``%seed N``: what was reached, in one line, and a line for each switch that needs a word."""
    seeded = seeding.seed(
        number,
        deterministic=deterministic,
        each_cell=each_cell,
        strict=strict,
        pin_entropy=pin_entropy,
        cell=cell,
    )
    parts = [f"seed {number}: {', '.join(seeded.names)} seeded"]
    waiting = [name for name in seeded.imports if name in ("numpy", "torch")]
    if waiting:
        parts.append(f"{' and '.join(waiting)} when imported")
    if seeded.devices:
        parts.append(f"{' and '.join(seeded.devices)} when it starts")
    if each_cell:
        parts.append("each later cell under a seed of its own")
    return "\n".join(["; ".join(parts), *(f"  note: {said}" for said in seeded.switches)])


def in_force() -> str:
    """``%seed``: the seed in force and its options."""
    regime = seeding.in_force()
    if regime is None:
        return "no seed in force; %seed N sets one"
    options = [
        said
        for on, said in (
            (regime.deterministic, "deterministic switches on"),
            (regime.each_cell, "each cell under a seed of its own"),
            (regime.strict, "entropy that no seed controls is an error"),
            (regime.pin_entropy, "unseeded NumPy generators fed from it"),
        )
        if on
    ]
    return "; ".join([f"seed {regime.seed} in force", *options])


def checkpoint(name: str) -> str:
    """``%rng checkpoint NAME``: the checkpoint of the cell NAME is taken here, without a run."""
    if not name.strip() or name.startswith("-"):
        raise CheckpointError(f"a checkpoint needs a name, got {name!r}")
    taken, notes = CHECKPOINTS.take(f"name:{name}", name)
    said = [f"checkpoint {name} taken, {taken.fingerprint[:8]}: {', '.join(taken.states)}"]
    return "\n".join([*said, *(f"  note: {note}" for note in notes)])


def restore(name: str) -> str:
    """``%rng restore NAME``: the generators go back to a checkpoint."""
    kept = CHECKPOINTS.find(name).snapshot
    done = restore_snapshot(kept, strict=False)
    said = [f"restored {name}, {kept.fingerprint[:8]}: {', '.join(done.names)}"]
    return "\n".join([*said, *(f"  note: {note}" for note in left_out(done))])


def drop(name: str) -> str:
    """``%rng drop NAME``: a checkpoint and its runs are forgotten."""
    count, kept = CHECKPOINTS.drop(name)
    where = f", in {CHECKPOINTS.store.path} too" if kept else ""
    return f"dropped {name}: {count} checkpoint{'' if count == 1 else 's'} and the runs{where}"


def compare(first: str, second: str | None = None) -> str:
    """``%rng diff A [B]``: which generators differ between two checkpoints, or A and now."""
    before = CHECKPOINTS.find(first).snapshot
    after = snapshot() if second is None else CHECKPOINTS.find(second).snapshot
    return f"{first} and {second or 'now'}: {before.diff(after)}"


def save(path: str) -> str:
    """``%rng save FILE``: the state of every generator, in a file."""
    taken, regime = snapshot(), seeding.in_force()
    taken.save(path, None if regime is None else regime.seed)
    said = [f"saved {path}, {taken.fingerprint[:8]}: {', '.join(taken.states)}"]
    return "\n".join([*said, *(f"  note: {note}" for note in taken.notes)])


def load(path: str, partial: bool = False) -> str:
    """``%rng load FILE``: the generators go to the states in a file, all of them or none.

    With `partial` those go that are there and fit.
    """
    stored = snapshot_file.read(Path(path).expanduser())
    taken = Snapshot.of(stored)
    wanted = plan(taken)
    reasons = [*wanted.unfit.values(), *_absent(wanted.missing)]
    if reasons and not (partial and wanted.targets):
        ways = "; --partial sets the others" if wanted.targets else ""
        raise StateError(f"{path} was not loaded: {'; '.join(reasons)}{ways}")
    done = wanted.carry_out()
    under = "" if stored.seed is None else f"; saved under seed {stored.seed}"
    said = [f"loaded {path}, {taken.fingerprint[:8]}: {', '.join(done.names)}{under}"]
    notes = [f"not set: {reason}" for reason in reasons] + list(taken.notes)
    if done.uncovered:
        notes.append(f"not in the file: {', '.join(done.uncovered)}")
    return "\n".join([*said, *(f"  note: {note}" for note in notes)])


def _absent(names: Iterable[str]) -> list[str]:
    """Why generators are not there, a phrase for each reason."""
    found: dict[str, list[str]] = {}
    for name in names:
        library = name.partition(".")[0]
        known = library in {room.library for room in generators.rooms()}
        if name.startswith("user:"):
            reason = "no such variable"
        elif known and not is_imported(library):
            reason = f"{library} is not imported"
        elif known:
            reason = "no such device"
        else:
            reason = "not registered"
        found.setdefault(reason, []).append(name.removeprefix("user:"))
    return [f"{', '.join(held)} ({reason})" for reason, held in found.items()]


def synchronize(source: str) -> str:
    """``%rng sync SOURCE``: a device's state is given to its sisters."""
    sisters = sync(source)
    return f"{kind_of(source)}:{spans(sisters)} set to the state of {source}"
