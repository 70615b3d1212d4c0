"""Snapshot: the states of all generators at one moment; capture, restore, compare."""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from . import determinism, generators, snapshot_file
from .errors import CoverageError, StateError
from .fingerprint import of_state, of_states
from .generators import Generator
from .snapshot_file import Stored

# The last fingerprint by generator. Most generators do not move from one snapshot to the next, and
# comparing two states takes a hundredth of the time of a hash.
_latest: dict[str, tuple[bytes, str]] = {}


def _latest_or_new(name: str, state: bytes) -> str:
    known = _latest.get(name)
    if known is not None and known[0] == state:
        return known[1]
    if len(_latest) >= 1000:
        _latest.clear()
    found = of_state(state)
    _latest[name] = (state, found)
    return found


@dataclass(frozen=True)
class Difference:
    """How one snapshot differs from another; true if it does.

    Attributes
    ----------
    changed
        Generators whose states differ, sorted.
    only_first, only_second
        Generators that only one of the two has, sorted.
    """

    changed: tuple[str, ...]
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.changed or self.only_first or self.only_second)

    def __str__(self) -> str:
        parts = [
            ("differ", self.changed),
            ("only in the first", self.only_first),
            ("only in the second", self.only_second),
        ]
        said = [f"{what}: {', '.join(names)}" for what, names in parts if names]
        return "; ".join(said) or "no difference"


@dataclass(frozen=True)
class Snapshot:
    """The states of all generators at one moment.

    Attributes
    ----------
    states
        Bytes by generator name, as they were: a copy that no draw changes.
    notes
        One sentence for each thing that is not covered.
    """

    states: Mapping[str, bytes] = field(repr=False)
    notes: tuple[str, ...] = ()

    @functools.cached_property
    def fingerprints(self) -> dict[str, str]:
        """32 hex digits by generator name; equal for equal states on every machine."""
        return {name: _latest_or_new(name, state) for name, state in self.states.items()}

    @functools.cached_property
    def fingerprint(self) -> str:
        """32 hex digits over the sorted (name, state) pairs."""
        return of_states(self.states)

    def diff(self, other: Snapshot) -> Difference:
        """Which generators are in another state, or missing, in `other`."""
        common = self.states.keys() & other.states.keys()
        return Difference(
            tuple(sorted(n for n in common if self.states[n] != other.states[n])),
            tuple(sorted(self.states.keys() - common)),
            tuple(sorted(other.states.keys() - common)),
        )

    def joined(self, states: Mapping[str, bytes]) -> Snapshot:
        """This snapshot with generators that came to be after it."""
        return Snapshot({**states, **self.states}, self.notes)

    def only(self, names: Iterable[str]) -> Snapshot:
        """The part of it that some generators have."""
        return Snapshot({name: self.states[name] for name in names if name in self.states})

    def save(self, path: str | os.PathLike[str], seed: int | None = None) -> None:
        """Write it to a file, in one step: all of it is there afterwards, or nothing has changed.

        Parameters
        ----------
        path
            The file; one that holds no snapshot is not replaced.
        seed
            The seed in force, to be noted in it.

        Raises
        ------
        FileError
            If it cannot be written.
        """
        snapshot_file.write(Path(path).expanduser(), self.to_store(seed))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Snapshot:
        """The snapshot in a file, checked; no generator has moved.

        Its notes also say which libraries and devices were others when it was saved.

        Raises
        ------
        FileError
            If it cannot be read, is damaged, or is no snapshot.
        """
        return cls.of(snapshot_file.read(Path(path).expanduser()))

    def to_store(self, seed: int | None = None) -> Stored:
        """What a file holds of it."""
        versions, models = _surroundings()
        kept = {name: model for name, model in models.items() if name in self.states}
        return Stored(self.states, seed, versions, kept, self.notes)

    @classmethod
    def of(cls, stored: Stored) -> Snapshot:
        """The snapshot that a file holds."""
        versions, models = _surroundings()
        others = [
            f"saved with {name} {version}, here {versions[name]}"
            for name, version in stored.versions.items()
            if versions.get(name, version) != version
        ]
        others += [
            f"{name} was a {model}, here it is a {models[name]}: its draws may differ"
            for name, model in stored.models.items()
            if models.get(name, model) != model
        ]
        return cls(stored.states, tuple(dict.fromkeys([*stored.notes, *others])))

    def __repr__(self) -> str:
        return f"<Snapshot {self.fingerprint[:8]}: {', '.join(self.states) or 'no generators'}>"


def _surroundings() -> tuple[dict[str, str], dict[str, str]]:
    """The versions of Python and the imported libraries, and what devices are called."""
    switches = determinism.switches()
    versions = {
        name.removesuffix(" version"): str(value)
        for name, value in switches.items()
        if name == "python" or name.endswith(" version")
    }
    existing = generators.existing(()).generators
    models = {name: str(getattr(g, "model", "")) for name, g in existing.items()}
    return versions, {name: model for name, model in models.items() if model}


def snapshot(names: Iterable[str] | None = None) -> Snapshot:
    """The states of all generators that exist now; nothing is moved, imported or started.

    Parameters
    ----------
    names
        In a notebook: the variables whose generator objects are covered too; by default all.
    """
    found = generators.existing(names)
    states = {name: generator.get_state() for name, generator in found.generators.items()}
    return Snapshot(states, found.notes)


def fingerprints() -> dict[str, str]:
    """The fingerprint of every generator that exists now, as 32 hex digits by name."""
    return snapshot().fingerprints


@dataclass(frozen=True)
class Restored:
    """What a restore did.

    Attributes
    ----------
    names
        Generators that were set.
    missing
        In the snapshot, but not there now.
    uncovered
        There now, but not in the snapshot; left alone.
    unfit
        Why a generator's state does not fit it, by name; left alone.
    """

    names: tuple[str, ...]
    missing: tuple[str, ...] = ()
    uncovered: tuple[str, ...] = ()
    unfit: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        left = {
            "no longer there": self.missing,
            "not in the snapshot": self.uncovered,
            "unfit": tuple(self.unfit),
        }
        said = [f"{what}: {', '.join(names)}" for what, names in left.items() if names]
        return f"<{'; '.join([f'restored {_named(self.names)}', *said])}>"


def restore(
    snapshot: Snapshot, strict: bool = True, names: Iterable[str] | None = None
) -> Restored:
    """Put every generator back to its state in `snapshot`: all or nothing.

    Parameters
    ----------
    strict
        If the snapshot and the generators that exist now differ in their names, or a state does not
        fit, raise. Otherwise set what fits and return what does not.
    names
        As for `snapshot`.

    Raises
    ------
    CoverageError
        In strict mode, naming the generators that only one side has.
    StateError
        In strict mode, if a state does not fit its generator. In both modes nothing has moved: all
        states are checked first, and if setting one fails, those set before it are put back.
    """
    if not isinstance(snapshot, Snapshot):
        raise StateError(f"restore() takes a Snapshot, got {type(snapshot).__name__}")
    found = plan(snapshot, names)
    if strict and found.unfit:
        raise StateError(next(iter(found.unfit.values())))
    if strict and (found.missing or found.uncovered):
        raise CoverageError(_coverage(found.missing, found.uncovered))
    return found.carry_out()


@dataclass(frozen=True)
class Plan:
    """What a restore would do: nothing has moved yet.

    Attributes
    ----------
    targets
        Generators and the states that fit them.
    missing, uncovered, unfit
        As of `Restored`.
    """

    targets: list[tuple[Generator, bytes]]
    missing: tuple[str, ...]
    uncovered: tuple[str, ...]
    unfit: Mapping[str, str]

    def carry_out(self) -> Restored:
        """Set all targets or none."""
        set_all(self.targets)
        set_now = tuple(generator.name for generator, _ in self.targets)
        return Restored(set_now, self.missing, self.uncovered, self.unfit)


def plan(snapshot: Snapshot, names: Iterable[str] | None = None) -> Plan:
    """Which generators could be put back to a snapshot, and which not; every state is checked."""
    current = generators.existing(names).generators
    targets: list[tuple[Generator, bytes]] = []
    missing: list[str] = []
    unfit: dict[str, str] = {}
    for name, state in snapshot.states.items():
        generator = current.get(name) or generators.resolve(name)
        if generator is None:
            missing.append(name)
            continue
        try:
            if not isinstance(state, bytes):
                raise StateError(f"{name}: the state is a {type(state).__name__}, expected bytes")
            generator.check_state(state)
        except StateError as error:
            unfit[name] = str(error)
        else:
            targets.append((generator, state))
    uncovered = []
    if current.keys() != snapshot.states.keys() or missing:
        reached = {generator.name for generator, _ in targets} | set(unfit)
        uncovered = [n for n in current if n not in reached and not _belongs(n, reached)]
    return Plan(targets, tuple(missing), tuple(uncovered), unfit)


def _named(names: Iterable[str]) -> str:
    return ", ".join(names) or "nothing"


def _belongs(name: str, reached: set[str]) -> bool:
    """Whether `name` is a device of a kind that was set as a whole, or the kind of one that was."""
    return name.rpartition(":")[0] in reached or any(n.startswith(f"{name}:") for n in reached)


def _coverage(missing: Iterable[str], uncovered: Iterable[str]) -> str:
    said = []
    if missing:
        said.append(f"no longer there: {', '.join(missing)}")
    if uncovered:
        said.append(f"not in the snapshot: {', '.join(uncovered)}")
    return f"{'; '.join(said)}; restore(..., strict=False) sets the others"


def set_all(targets: list[tuple[Generator, bytes]]) -> None:
    """Set checked states; on any error put back those already set, and raise.

    Python's own stream goes last: ``random.setstate`` either sets or does nothing, so that its
    state, the dearest of all to read, need not be read for a way back.
    """
    last = [target for target in targets if target[0].name == "python"]
    targets = [target for target in targets if target[0].name != "python"] + last
    undo: list[tuple[Generator, bytes]] = []
    try:
        for generator, state in targets:
            if generator.name != "python":
                owner: Generator = getattr(generator, "undo", generator)
                undo.append((owner, owner.get_state()))
            generator.set_state(state)
    except BaseException:
        _undo(undo[::-1])
        raise


def put_back(before: Snapshot) -> None:
    """Set every generator that still takes its state in `before`; warn of those that do not."""
    current = generators.existing(()).generators
    known = [(current[name], state) for name, state in before.states.items() if name in current]
    _undo(known)


def _undo(states: list[tuple[Generator, bytes]]) -> None:
    stuck = [generator.name for generator, state in states if not _back(generator, state)]
    if stuck:
        said = f"nbseed: {', '.join(stuck)} could not be put back"
        warnings.warn(said, RuntimeWarning, stacklevel=4)


def _back(generator: Generator, state: bytes) -> bool:
    """Whether `generator` is at `state` again; one that refuses must not keep the others."""
    try:
        generator.set_state(state)
    except Exception:
        return generator.get_state() == state
    return True
