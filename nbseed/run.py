"""Run: what one execution of a checkpointed cell came to."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from array import array

    import numpy as np
    import pandas as pd

    from .recording import Observed

Doubles: TypeAlias = "array[float] | np.ndarray[Any, np.dtype[np.float64]]"


@dataclass(frozen=True, eq=False)
class Run:
    """One execution of a checkpointed cell.

    Attributes
    ----------
    number
        1, 2, ... within the cell, over all seeds.
    name
        The cell's name.
    seed
        The seed in force when its checkpoint was taken, or None.
    values
        What was recorded by name, in the order it came, as doubles.
    start, end
        Fingerprints of the snapshot that it started from and of the generators after it: 32 hex
        digits. `end` is "" if the end could not be read.
    status
        "ok", "error" or "interrupted".
    starts, ends
        The same by generator.
    switches
        Threads, default dtype, deterministic flags, versions and the like, as they were at the end.
    error
        The exception's type and text, if one ended the run.
    notes
        What was not covered or kept, a sentence each.
    code
        The cell's body.
    checkpoint
        Equal for runs that started from the same checkpoint.
    turn
        Counts the runs of all cells.
    partial
        Whether some generator could not be rewound, or was not in the checkpoint.
    observed
        What it met, called and left, for telling why it differs from another; None if unknown.
    """

    number: int
    name: str
    seed: int | None
    values: Mapping[str, Doubles] = field(repr=False)
    start: str
    end: str
    status: str
    starts: Mapping[str, str] = field(repr=False, default_factory=dict)
    ends: Mapping[str, str] = field(repr=False, default_factory=dict)
    switches: Mapping[str, Any] = field(repr=False, default_factory=dict)
    error: str | None = None
    notes: tuple[str, ...] = field(repr=False, default=())
    code: str = field(repr=False, default="")
    checkpoint: int = field(repr=False, default=0)
    turn: int = field(repr=False, default=0)
    partial: bool = field(repr=False, default=False)
    observed: Observed | None = field(repr=False, default=None)

    @functools.cached_property
    def losses(self) -> dict[str, np.ndarray[Any, np.dtype[np.float64]]]:
        """float64 arrays of shape (steps,) by name; imports NumPy, views where it can."""
        import numpy as np

        return {name: np.asarray(values, np.float64) for name, values in self.values.items()}


class Runs(list[Run]):
    """Runs, oldest first; a list with one more way out."""

    def to_dataframe(self) -> pd.DataFrame:
        """A copy of what was recorded, as a pandas frame with a row for each value.

        Its columns are ``run`` (int), ``name``, ``seed`` (Int64, missing without one), ``status``,
        ``metric``, ``step`` (from 0) and ``value`` (float64). A run that recorded nothing has one
        row without metric, step and value.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        import numpy as np
        import pandas as pd

        empty: dict[str | None, Any] = {None: [np.nan]}
        frames = [
            pd.DataFrame(
                {
                    "run": run.number,
                    "name": run.name,
                    "seed": pd.array([run.seed] * len(values), "Int64"),
                    "status": run.status,
                    "metric": pd.Series([metric] * len(values), dtype="object"),
                    "step": pd.array(
                        range(len(values)) if metric is not None else [None], dtype="Int64"
                    ),
                    "value": np.array(values, np.float64),
                }
            )
            for run in self
            for metric, values in (run.losses or empty).items()
        ]
        columns = ["run", "name", "seed", "status", "metric", "step", "value"]
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=columns)
