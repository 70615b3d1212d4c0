"""Why two runs differ: one room a cause; here they are asked and ranked."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass

from ..outcome import compare
from ..recording import Observed
from ..run import Run
from . import arithmetic, code, entropy, process, reach, seeds, unfinished, variables
from .cause import Cause, Pair, listed

__all__ = ["Cause", "Explanation", "explain", "warnings_of"]

_ROOMS: tuple[tuple[str, Callable[[Pair], list[Cause]]], ...] = (
    ("how the runs ended", unfinished.find),
    ("the cell's code and its functions", code.find),
    ("the variables it reads", variables.find),
    ("seeds", seeds.find),
    ("entropy that no seed controls", entropy.find),
    ("switches, clocks and kernels", arithmetic.find),
    ("files, folders and environment variables", process.find),
    ("what a rewind does not reach", reach.find),
)


_TOO_LATE = re.compile(r"\((no time .*|.* over the budget|the time ran out)\)$").search


@dataclass(frozen=True)
class Explanation:
    """Why a run differs from another.

    Attributes
    ----------
    base, run
        The two.
    same
        Whether nothing differs; then there are no causes.
    causes
        The likeliest first.
    draws
        How far generators went, where that differs, a sentence each.
    ruled_out
        What was looked at and is the same.
    not_compared
        What was not looked at, a phrase each.
    known
        What the user should know though nothing differs, a sentence each.
    restart
        What may come out otherwise in a new kernel, a sentence each.
    """

    base: Run
    run: Run
    same: bool
    causes: tuple[Cause, ...]
    draws: tuple[str, ...]
    ruled_out: tuple[str, ...]
    not_compared: tuple[str, ...]
    known: tuple[str, ...]
    restart: tuple[str, ...]

    @property
    def in_short(self) -> str:
        """A few words for the report's line; "" if there is no cause but what may be one."""
        likely = [cause for cause in self.causes if cause.is_likely]
        if not likely:
            return ""
        more, said = len(likely) - 1, likely[0].said
        return f"{said}; {more} more in %rng why" if more else said


@functools.lru_cache(maxsize=64)  # text, HTML and data of one report ask the same
def explain(base: Run, run: Run, differs: bool = False) -> Explanation:
    """Why `run` differs from `base`: causes, and what was ruled out; from the records alone.

    Parameters
    ----------
    differs
        Whether something differs that the records do not hold, such as what was printed.
    """
    outcome = compare(base, run)
    # What is not known of one run is no difference: it is taken to be as in the other.
    before = base.observed or run.observed or Observed()
    now = run.observed or before
    pair = Pair(base, run, outcome, before, now)
    causes: list[Cause] = []
    clear: list[str] = []
    alike = (run.status, run.error) == (base.status, base.error)
    same = outcome.same and alike and not differs
    if not same:
        for what, find in _ROOMS:
            found = find(pair)
            causes += found
            if not found:
                partly = find is variables.find and (before.met.left_out or now.met.left_out)
                clear.append(f"{what}, as far as they were compared" if partly else what)
        if not any(cause.is_likely for cause in causes):
            causes += code.draws(pair)  # else it follows from them
        causes += process.perhaps(pair)
        causes.sort(key=lambda cause: -cause.weight)
    return Explanation(
        base=base,
        run=run,
        same=same,
        causes=tuple(causes),
        draws=tuple(code.draw_lines(pair)),
        ruled_out=tuple(clear),
        not_compared=tuple(_not_compared(pair)),
        known=tuple(warnings_of(run)),
        restart=tuple(dict.fromkeys(process.after_restart(pair))),
    )


def warnings_of(run: Run) -> list[str]:
    """What the user should know of a run, whether it differs from another or not."""
    if run.observed is None:
        return []
    return [seeds.reseeded(call) for call in seeds.over_the_users(run.observed)]


def _not_compared(pair: Pair) -> list[str]:
    said = [
        f"{name} ({reason})"
        for contents in (pair.now.met, pair.before.met, pair.now.left, pair.before.left)
        for name, reason in contents.left_out.items()
    ]
    if any(_TOO_LATE(text) for text in said):
        said.append("%config NBSeed.compare_seconds = 1 gives more time")
    opaque = [f"{n}{path}" for n, c in pair.now.met.found.items() for path in c.opaque]
    if opaque:
        said.append(f"not looked into: {listed(opaque)}")
    return list(dict.fromkeys(said))
