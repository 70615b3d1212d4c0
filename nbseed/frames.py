"""What runs now and what ends with it: a stack of cells, each with its runs and its blocks."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from .checkpoint import Ended, Running
from .checkpoints import CHECKPOINTS


@dataclass
class Frame:
    """One cell, or one ``run_cell`` inside another, while it runs.

    Attributes
    ----------
    text
        The raw cell.
    cell_id
        The front end's identity of it, None where it sends none.
    scopes
        What ends with the cell: runs, and isolated blocks; the last one begun first.
    ended
        Runs that have ended in it: ``--runs`` and ``%%timeit`` make several.
    begun
        The identities of the checkpointed cells that have begun in it.
    guarded
        Whether entropy is refused or fed until it ends.
    """

    text: str
    cell_id: str | None
    scopes: list[Running | AbstractContextManager[None]] = field(default_factory=list)
    ended: list[Ended] = field(default_factory=list)
    begun: set[str] = field(default_factory=set)
    guarded: bool = False

    def begin(self, scope: Running | AbstractContextManager[None]) -> None:
        """Let a run that has begun, or a block that has not, end with this cell."""
        if isinstance(scope, Running):
            self.begun.add(scope.cell)
        else:
            scope.__enter__()
        self.scopes.append(scope)

    def end_run(self, cell: str) -> None:
        """End a cell's run, if one goes on, and what began inside it: the same body runs again."""
        while any(isinstance(scope, Running) and scope.cell == cell for scope in self.scopes):
            scope = self.scopes.pop()
            if isinstance(scope, Running):
                self.ended.append(CHECKPOINTS.end(scope, "ok"))
            else:
                scope.__exit__(None, None, None)

    def end(
        self,
        status: str,
        error: str | None,
        on_fault: Callable[[Exception], None],
        value: Any = None,
    ) -> None:
        """End all that is open, the last one begun first; a fault stops none of the others."""
        for scope in reversed(self.scopes):
            try:
                if isinstance(scope, Running):
                    self.ended.append(CHECKPOINTS.end(scope, status, error, value))
                else:
                    scope.__exit__(None, None, None)
            except Exception as fault:
                if isinstance(scope, Running):
                    CHECKPOINTS.abandon(scope)
                on_fault(fault)
        self.scopes.clear()

    def abandon(self) -> None:
        """End all that is open, and record nothing."""
        for scope in reversed(self.scopes):
            if isinstance(scope, Running):
                CHECKPOINTS.abandon(scope)
            else:
                scope.__exit__(None, None, None)
        self.scopes.clear()


class Frames:
    """The cells that run now: one, and those that it runs itself."""

    def __init__(self) -> None:
        self._stack: list[Frame] = []

    @property
    def innermost(self) -> Frame | None:
        return self._stack[-1] if self._stack else None

    @property
    def outermost(self) -> Frame | None:
        return self._stack[0] if self._stack else None

    def enter(self, text: str, cell_id: str | None) -> bool:
        """Begin a cell; returns whether it is the outermost."""
        self._stack.append(Frame(text, cell_id))
        return len(self._stack) == 1

    def leave(self, info: Any) -> Frame | None:
        """The frame that ends, with all that was left open inside it; None if it never began.

        An interrupted cell that awaits comes back with another `info`, or with none: so the text
        tells which cell it is, and without one it is the outermost.
        """
        if info is None:
            return self._cut(0) if self._stack else None
        for index in reversed(range(len(self._stack))):
            if self._stack[index].text == info.raw_cell:
                return self._cut(index)
        return None

    def _cut(self, index: int) -> Frame:
        frame, *inside = self._stack[index:]
        del self._stack[index:]
        for inner in inside:
            frame.scopes += inner.scopes
        return frame

    def checkpointed(self) -> str | None:
        """The identity of the checkpointed cell that runs now."""
        for frame in reversed(self._stack):
            for scope in reversed(frame.scopes):
                if isinstance(scope, Running):
                    return scope.cell
        return None

    def close(self) -> None:
        """End what is open, without a word."""
        while self._stack:
            self._stack.pop().abandon()


def how_it_ended(result: Any) -> tuple[str, str | None]:
    """The status of a cell from IPython's result, and the error as one short line."""
    if result is None:  # the front end cancelled it
        return "interrupted", None
    error = result.error_before_exec or result.error_in_exec
    if error is None:
        return "ok", None
    # Cancelling is how ipykernel interrupts a cell that awaits.
    if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "CancelledError":
        return "interrupted", None
    name, text = type(error).__name__, " ".join(str(error).split())
    text = text if len(text) <= 80 else f"{text[:77]}..."
    return "error", f"{name}: {text}" if text else name
