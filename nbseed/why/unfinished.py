"""The run did not finish."""

from __future__ import annotations

from ..content.record import counted
from .cause import Cause, Pair


def find(pair: Pair) -> list[Cause]:
    """That one of the two ended by an error or an interrupt."""
    run, base = pair.run, pair.base
    if (run.status, run.error) == (base.status, base.error):
        return []
    said = {
        which.number: "went to its end" if which.status == "ok" else (
            "was interrupted" if which.status == "interrupted"
            else f"ended by {which.error or 'an error'}"
        )
        for which in (base, run)
    }  # fmt: skip
    steps = [
        f"{name}: compared over the common {counted(count, 'step')}"
        for name, count in pair.outcome.steps.items()
    ]
    return [
        Cause(
            100,
            f"run {run.number} {said[run.number]}, run {base.number} {said[base.number]}",
            tuple(steps),
            "run the cell to its end",
        )
    ]
