"""What a run came to beside another: a pure comparison."""

from __future__ import annotations

from dataclasses import dataclass

from .content import Content
from .run import Doubles, Run
from .signs import CLOCK, Sign, signs


@dataclass(frozen=True)
class Outcome:
    """What a run came to beside the first one from its checkpoint; a pure comparison.

    Attributes
    ----------
    elsewhere
        Generators that ended in another state.
    parted
        For each loss that differs: its name, the first step that does, and both values.
    steps
        Steps compared, by loss.
    unequal
        Losses of which one run has more steps, with both lengths.
    lacking
        Losses that only one of the two has.
    values
        Variables that the cell assigns, and its own value, that came out with another content.
    """

    elsewhere: tuple[str, ...]
    parted: tuple[tuple[str, int, float, float], ...]
    steps: dict[str, int]
    unequal: dict[str, tuple[int, int]]
    lacking: tuple[str, ...]
    values: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        return not (self.elsewhere or self.parted or self.unequal or self.lacking or self.values)


def compare(base: Run, run: Run) -> Outcome:
    """Which generators ended elsewhere, and where the losses part."""
    common = [name for name in run.ends if name in base.ends]
    parted, steps, unequal = [], {}, {}
    for name in run.values:
        if name in base.values:
            first, second = base.values[name], run.values[name]
            steps[name] = min(len(first), len(second))
            if len(first) != len(second):
                unequal[name] = (len(first), len(second))
            step = first_difference(first, second)
            if step is not None:
                parted.append((name, step, float(first[step]), float(second[step])))
    return Outcome(
        tuple(name for name in common if run.ends[name] != base.ends[name]),
        tuple(parted),
        steps,
        unequal,
        tuple(sorted(base.values.keys() ^ run.values.keys())),
        _other_values(base, run),
    )


def _other_values(base: Run, run: Run) -> tuple[str, ...]:
    if base.observed is None or run.observed is None:
        return ()
    first, second = base.observed.left.found, run.observed.left.found
    known = signs(run.observed.source)
    return tuple(
        name
        for name, now in second.items()
        if name in first
        and first[name].digest != now.digest
        and not _is_timed(first[name], now, known.timed)
        and not (_is_dated(known.derived.get(name)) and now.kind in _NAMES)
    )


def _is_dated(sign: Sign | None) -> bool:
    return sign is not None and sign.kind == CLOCK


# A name made of the date: of a file, a folder, a run.
_NAMES = {"str", "PosixPath", "WindowsPath"}


def _is_timed(first: Content, now: Content, keys: frozenset[str]) -> bool:
    """Whether two contents differ only under keys where the cell keeps measured times."""
    if not keys:
        return False
    paths = first.parts.keys() | now.parts.keys()
    other = {path for path in paths if first.parts.get(path) != now.parts.get(path)}
    leaves = {p for p in other if not any(q != p and q.startswith(p) for q in other)}
    return bool(leaves) and all(any(f"[{key!r}]" in path for key in keys) for path in leaves)


def first_difference(first: Doubles, second: Doubles) -> int | None:
    """The first step at which two series of doubles differ in any bit, over their common part.

    Their bytes are compared, so that NaN equals itself and -0.0 is not 0.0; by halves, at memory's
    speed and without NumPy.
    """
    one, other = memoryview(first.tobytes()), memoryview(second.tobytes())
    low, high = 0, min(len(one), len(other)) // 8
    if one[: 8 * high] == other[: 8 * high]:
        return None
    while high - low > 1:  # they agree below `low`, and differ somewhere below `high`
        middle = (low + high) // 2
        if one[8 * low : 8 * middle] == other[8 * low : 8 * middle]:
            low = middle
        else:
            high = middle
    return low
