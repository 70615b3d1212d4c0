"""The rows of the panel: each generator as it is now, and which devices are in step."""

from __future__ import annotations

from dataclasses import dataclass

from .. import generators
from ..ledger import LEDGER, Move
from ..snapshot import Snapshot
from ..sync import families, kind_of, spans

MANY = 8
"""More devices of one kind share a row where they are in the same state."""
_BOUND = 100_000  # words that are counted after a cell: a millisecond


@dataclass(frozen=True)
class Row:
    """One generator, or many devices in one state.

    Attributes
    ----------
    name
        ``torch.cuda:0``, or ``torch.cuda:0 to 63``.
    model
        What the device is called; "" for what is no device, and before it has started.
    mark
        The fingerprint, 32 hex digits.
    by, far
        Which cell moved it last, and how far: ``[7] train``, ``640 words``.
    group
        A letter that sisters in the same state share; "" for one in a state of its own.
    count
        How many generators the row stands for.
    differs
        Whether it differs from the checkpoint that it is compared with; None without one.
    """

    name: str
    model: str
    mark: str
    by: str
    far: str
    group: str = ""
    count: int = 1
    differs: bool | None = None


@dataclass(frozen=True)
class Now:
    """All generators at one moment.

    Attributes
    ----------
    rows
        One for each, devices in one state next to each other.
    steps
        For each kind of device that is there several times, a sentence: are they in step?
    taken
        Their states.
    """

    rows: tuple[Row, ...]
    steps: tuple[str, ...]
    taken: Snapshot


_told: dict[str, tuple[Move, str]] = {}  # how far a move went: counted once


def now(beside: Snapshot | None = None) -> Now:
    """The generators that exist now; `beside` is a snapshot to compare them with."""
    existing = generators.existing()
    taken = Snapshot({n: g.get_state() for n, g in existing.generators.items()}, existing.notes)
    moves = LEDGER.moves_now(taken.states)
    sisters = families(taken.states)
    letters = {name: group for names in sisters.values() for name, group in _groups(names, taken)}
    models = {name: getattr(g, "model", "") for name, g in existing.generators.items()}
    alike = {kind: models[names[0]] for kind, names in sisters.items() if _are_alike(names, models)}
    rows = []
    for name, mark in taken.fingerprints.items():
        move = moves.get(name)
        rows.append(
            Row(
                name=name,
                model="" if kind_of(name) in alike else models[name],
                mark=mark,
                by=move.by if move else "",
                far=_how_far(name, move) if move else "",
                group=letters.get(name, ""),
                differs=None if beside is None else beside.states.get(name) != taken.states[name],
            )
        )
    # Sisters in one state stand next to each other, the largest group first.
    first = {kind: list(taken.states).index(names[0]) for kind, names in sisters.items()}
    order = {name: i for i, name in enumerate(taken.states)}
    rank = {name: i for i, name in enumerate(letters)}
    rows.sort(key=lambda r: (first.get(kind_of(r.name), order[r.name]), rank.get(r.name, 0)))
    for names in sisters.values():
        if len(names) > MANY:
            rows = _joined(rows, set(names))
    return Now(
        tuple(rows),
        tuple(_steps(kind, n, taken, alike.get(kind, "")) for kind, n in sisters.items()),
        taken,
    )


def _how_far(name: str, move: Move) -> str:
    known = _told.get(name)
    if known is None or known[0] is not move:
        if len(_told) >= 1000:
            _told.clear()
        known = _told[name] = (move, move.how_far(name, _BOUND))
    return known[1]


def _groups(names: list[str], taken: Snapshot) -> list[tuple[str, str]]:
    """A letter for each state that several share, that of most first: A, B, ..., Z, A1, B1, ..."""
    holders: dict[bytes, list[str]] = {}
    for name in names:
        holders.setdefault(taken.states[name], []).append(name)
    ranked = sorted(holders.values(), key=lambda held: -len(held))
    return [
        (name, _letter(rank) if len(held) > 1 else "")
        for rank, held in enumerate(ranked)
        for name in held
    ]


def _letter(rank: int) -> str:
    turn, rest = divmod(rank, 26)
    return f"{'ABCDEFGHIJKLMNOPQRSTUVWXYZ'[rest]}{turn or ''}"


def _are_alike(names: list[str], models: dict[str, str]) -> bool:
    """Whether there are many devices, of one model: it is said once."""
    return len(names) > MANY and len({models[name] for name in names}) == 1


def _steps(kind: str, names: list[str], taken: Snapshot, model: str) -> str:
    said = f"{kind}: {len(names)} devices" + (f" ({model})" if model else "")
    held: dict[bytes, list[str]] = {}
    for name in names:
        held.setdefault(taken.states[name], []).append(name)
    sizes = sorted(map(len, held.values()))
    if len(held) == 1:
        return f"{said}, all in step"
    if sizes[-1] == 1:
        return f"{said}, each in a state of its own"
    if len(held) == 2 and sizes[0] < sizes[1]:
        apart = min(held.values(), key=len)
        return f"{said}, not in step: {spans(apart)} apart"
    return f"{said}, not in step: {len(held)} states"


def _joined(rows: list[Row], names: set[str]) -> list[Row]:
    """Rows of one state and one move as one, where there are many."""
    kept: list[Row] = []
    members: dict[tuple[str, str, str, str], list[Row]] = {}
    for row in rows:
        if row.name in names:
            members.setdefault((row.mark, row.by, row.far, row.model), []).append(row)
    for row in rows:
        held = members.get((row.mark, row.by, row.far, row.model)) if row.name in names else None
        if held is None:
            kept.append(row)
        elif row is held[0]:
            kept.append(_one(held))
    return kept


def _one(held: list[Row]) -> Row:
    row = held[0]
    if len(held) == 1:
        return row
    name = f"{kind_of(row.name)}:{spans([r.name for r in held])}"
    return Row(name, row.model, row.mark, row.by, row.far, row.group, len(held), row.differs)
