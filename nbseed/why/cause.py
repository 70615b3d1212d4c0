"""Cause: one reason why two runs differ, with its evidence and what to type against it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from ..outcome import Outcome
from ..recording import Observed
from ..run import Run


@dataclass(frozen=True)
class Cause:
    """Why a run differs from another, or a thing that may be why.

    Attributes
    ----------
    weight
        Its place in the list: 100 for what is certain, below 50 for what may be.
    said
        In a few words, for the report's line.
    evidence
        A sentence each: which name, which line or library call, how many times.
    remedy
        What to type; code stands between backticks.
    """

    weight: int
    said: str
    evidence: tuple[str, ...]
    remedy: str

    @property
    def is_likely(self) -> bool:
        """Whether it is more than a possibility."""
        return self.weight >= 50


@dataclass(frozen=True)
class Pair:
    """Two runs of one cell, and what was observed of them."""

    base: Run
    run: Run
    outcome: Outcome
    before: Observed
    now: Observed

    @property
    def name(self) -> str:
        """The cell's name as one types it."""
        name = self.run.name
        return shlex.quote(name) if any(c.isspace() or c in "'\"" for c in name) else name

    def texts(self) -> dict[str, str]:
        """The cell's source under ``""``, and that of each function of the notebook it reaches."""
        return {"": self.now.source, **self.now.functions}


def place(line: int, function: str = "") -> str:
    """Where in the notebook: ``line 3``, or ``line 2 of train_step``."""
    return f"line {line} of {function}" if function else f"line {line}"


def times(count: int) -> str:
    """``once``, ``3 times``."""
    return "once" if count == 1 else f"{count:,} times"


def listed(names: tuple[str, ...] | list[str], most: int = 4) -> str:
    """A few names as a phrase: ``a``, ``a and b``, ``a, b and 3 more``."""
    names = list(names)
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def cut(text: str, most: int = 70) -> str:
    """A line of code, shortened."""
    return text if len(text) <= most else f"{text[: most - 3]}..."
