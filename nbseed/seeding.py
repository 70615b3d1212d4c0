"""Seed every generator, remember the seed in force, derive seeds, and isolate a piece of code."""

from __future__ import annotations

import hashlib
import itertools
import operator
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from . import determinism, generators, imports
from .errors import NbseedError, SeedError
from .generators import pinned
from .generators.torch import waiting
from .snapshot import put_back, restore, snapshot


@dataclass(frozen=True)
class Regime:
    """The seeding in force.

    Attributes
    ----------
    seed
        0..2**32 - 1.
    deterministic, each_cell, strict, pin_entropy
        The options it was set with.
    cell
        The checkpointed cell that set it, if one did; and then `before`, what was in force until
        then: the cell's checkpoint belongs to that.
    """

    seed: int
    deterministic: bool = False
    each_cell: bool = False
    cell: str | None = None
    strict: bool = False
    pin_entropy: bool = False
    before: Regime | None = None


@dataclass(frozen=True)
class Seeded:
    """What a call of `seed` reached.

    Attributes
    ----------
    names
        Generators that were seeded.
    imports
        Libraries that will be seeded when they are imported.
    devices
        Kinds of device that will be seeded when they start.
    switches
        One sentence for each deterministic switch that costs something or came too late.
    """

    names: tuple[str, ...]
    imports: tuple[str, ...]
    devices: tuple[str, ...]
    switches: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<seeded {', '.join(self.names)}>"


_in_force: Regime | None = None
_now: int | None = None  # the seed that a library imported now gets: of the cell, or in force
_moves = itertools.count(1)
_last_move = 0
_arrivals: list[Callable[[list[str]], None]] = []


def in_force() -> Regime | None:
    """The seeding in force, None before the first."""
    return _in_force


def last_move() -> int:
    """A number that grows each time all generators are put on a known path by seeding."""
    return _last_move


def kept() -> Callable[[], None]:
    """A call that brings back the seeding in force now, with its switches; moves no generator."""
    force, now, move, was_on = _in_force, _now, _last_move, pinned.is_on()

    def go_back() -> None:
        global _in_force, _now, _last_move
        _in_force, _now, _last_move = force, now, move
        pinned.switch(was_on)  # its state is in the snapshot that belongs to this moment
        if force is not None and force.deterministic:
            determinism.switch_on()
        else:
            determinism.switch_off()

    return go_back


def check_seed(seed: object) -> int:
    """`seed` as an int; SeedError unless it is an integer from 0 to 2**32 - 1.

    NumPy takes no others. Reducing them would give two seeds the same draws.
    """
    try:
        number = None if isinstance(seed, bool) else operator.index(seed)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None or not 0 <= number < 2**32:
        raise SeedError(f"the seed must be an integer from 0 to {2**32 - 1}, got {seed!r}")
    return number


def seed(
    seed: int,
    deterministic: bool = False,
    *,
    each_cell: bool = False,
    strict: bool = False,
    pin_entropy: bool = False,
    cell: str | None = None,
) -> Seeded:
    """Seed every generator, as ``random.seed``, ``numpy.random.seed``, ``torch.manual_seed`` do.

    Libraries that are not imported yet are seeded when they are. The call states the whole regime:
    what an earlier call asked for and this one does not is put back.

    Parameters
    ----------
    seed
        0..2**32 - 1.
    deterministic
        Also set the switches that make torch's arithmetic repeatable.
    each_cell
        Give every later cell a seed of its own.
    strict
        In later cells a call that takes entropy which no seed controls is an error.
    pin_entropy
        In later cells NumPy's unseeded generators are fed from this seed.
    cell
        The checkpointed cell that calls.

    Raises
    ------
    SeedError
        If `seed` is anything else; nothing has moved.
    """
    global _in_force
    number = check_seed(seed)
    was_on = pinned.is_on()
    try:
        pinned.switch(pin_entropy)
        seeded = seed_now(number)
    except BaseException:
        pinned.switch(was_on)
        raise
    switches = determinism.switch_on() if deterministic else determinism.switch_off()
    before = _in_force
    while cell is not None and before is not None and before.cell == cell:
        before = before.before
    if before is not None and before.cell is None:
        before = replace(before, before=None)  # no chain grows
    _in_force = Regime(
        number, deterministic, each_cell, cell, strict, pin_entropy, before if cell else None
    )
    return replace(seeded, switches=tuple(switches))


def seed_now(seed: int) -> Seeded:
    """Seed every generator, and those that arrive; what is in force for checkpoints stays."""
    global _now, _last_move
    before = snapshot(())
    names: list[str] = []
    later: list[str] = []
    try:
        for room in generators.rooms():
            if imports.is_imported(room.library):
                room.seed(seed)
                names.extend(generator.name for generator in room.generators())
            else:
                later.append(room.library)
        for name, generator in generators.registered().items():
            generator.seed(seed)
            names.append(name)
    except BaseException:
        put_back(before)
        raise
    watch_imports()
    _now, _last_move = seed, next(_moves)
    devices = tuple(waiting()) if imports.is_imported("torch") else ()
    reached = tuple(n for n in names if n not in _kinds(devices))
    return Seeded(reached, tuple(dict.fromkeys(later)), devices)


def _kinds(devices: tuple[str, ...]) -> set[str]:
    return {f"torch.{kind}" for kind in devices}


def watch_imports() -> None:
    """Seed libraries as they are imported, and tell who asked with `on_arrival`."""
    later = [r.library for r in generators.rooms() if not imports.is_imported(r.library)]
    imports.watch(later, _arrived)


def on_arrival(callback: Callable[[list[str]], None]) -> Callable[[], None]:
    """Call `callback(names)` when generators arrive by an import; returns the call that ends it."""
    _arrivals.append(callback)
    watch_imports()

    def stop() -> None:
        if callback in _arrivals:
            _arrivals.remove(callback)

    return stop


def _arrived(library: str) -> None:
    """Seed a library that has just been imported, before the user's code draws from it."""
    try:
        names: list[str] = []
        for room in generators.rooms():
            if room.library == library:
                if _now is not None:
                    room.seed(_now)
                names.extend(generator.name for generator in room.generators())
        if library == "torch":
            determinism.torch_arrived()
        for callback in list(_arrivals):
            callback(names)
    except Exception as error:  # an import of the user's must not fail for it
        warnings.warn(
            f"nbseed: {library} was not seeded at import ({type(error).__name__}: {error})",
            RuntimeWarning,
            stacklevel=2,
        )


def forget() -> None:
    """No seed is in force any more, no import is watched; the switches are put back."""
    global _in_force, _now
    _in_force = _now = None
    pinned.switch(False)
    _arrivals.clear()
    imports.unwatch()
    determinism.switch_off()


@contextmanager
def isolated(seed: int | None = None) -> Iterator[None]:
    """Run a block under its own seed; put every generator back afterwards, whatever happens.

    Parameters
    ----------
    seed
        0..2**32 - 1, or None to go on from where the generators are.

    Raises
    ------
    SeedError
        If `seed` is anything else; nothing has moved.
    """
    global _in_force
    number = None if seed is None else check_seed(seed)
    before, now, force, go_back = snapshot(), _now, _in_force, kept()
    try:
        if number is not None:
            seed_now(number)
            inside = force or Regime(number)
            _in_force = replace(inside, seed=number, each_cell=False, cell=None, before=None)
        yield
    finally:
        go_back()
        done = restore(before, strict=False)
        late = {name.partition(".")[0] for name in done.uncovered if not name.startswith("user:")}
        for room in generators.rooms():  # what arrived inside gets what it would have got outside
            if now is not None and room.library in late:
                room.seed(now)


def new_seed() -> int:
    """A seed from the operating system."""
    return int.from_bytes(os.urandom(4), "little")


def derive(seed: int, key: str) -> int:
    """A seed for one cell, 0..2**32 - 1; equal in every process and release.

    It is ``numpy.random.SeedSequence([seed, *words]).generate_state(1)[0]``, where `words` are the
    four little-endian 32-bit words of the 128-bit BLAKE2b of `key` in UTF-8. The algorithm (M. E.
    O'Neill, "Developing a seed_seq Alternative", 2015, as fixed by NumPy's NEP 19) is written out
    here because NumPy is not imported before the user imports it; a test compares the two.
    """
    digest = hashlib.blake2b(key.encode(), digest_size=16).digest()
    words = [int.from_bytes(digest[i : i + 4], "little") for i in range(0, 16, 4)]
    return _seed_sequence_word([check_seed(seed), *words])


def _seed_sequence_word(entropy: list[int]) -> int:
    """The first output word of a SeedSequence over 32-bit words of entropy."""
    mask = 0xFFFFFFFF
    constant = 0x43B0D7E5

    def hashed(word: int) -> int:
        nonlocal constant
        word ^= constant
        constant = constant * 0x931E8875 & mask
        word = word * constant & mask
        return word ^ word >> 16

    def mixed(x: int, y: int) -> int:
        word = 0xCA01F9DD * x - 0x4973F715 * y & mask
        return word ^ word >> 16

    pool = [hashed(word) for word in (entropy + [0] * 4)[:4]]
    for source, target in itertools.product(range(4), repeat=2):
        if source != target:
            pool[target] = mixed(pool[target], hashed(pool[source]))
    for word in entropy[4:]:
        pool = [mixed(kept, hashed(word)) for kept in pool]
    word = (pool[0] ^ 0x8B51F9DD) * (0x8B51F9DD * 0x58F38DED & mask) & mask
    return word ^ word >> 16


def seed_worker(worker_id: int) -> None:
    """Seed Python and NumPy in a DataLoader worker from the seed that torch gave it.

    For ``DataLoader(..., worker_init_fn=nbseed.seed_worker)``: torch seeds its own stream in each
    worker with ``base_seed + worker_id``; this brings the others along, so that workers differ from
    each other and a re-run repeats.
    """
    import random
    import sys

    torch: Any = sys.modules.get("torch")
    if torch is None or torch.utils.data.get_worker_info() is None:
        raise NbseedError("seed_worker is called by a DataLoader: pass it as worker_init_fn")
    word = torch.initial_seed() % 2**32
    for room in generators.rooms():
        if room.library not in ("random", "torch") and imports.is_imported(room.library):
            room.seed(word)
    random.seed(word)
