"""A real IPython shell in this process, with cells run as a front end runs them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config

import nbseed

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Ran:
    """What became of a cell: its printed text, its value, and the error that ended it."""

    out: str
    err: str
    value: Any
    error: BaseException | None

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


@dataclass(frozen=True)
class Notebook:
    """Cells for a shell; `ns` are the user's variables."""

    shell: InteractiveShell

    @property
    def ns(self) -> dict[str, Any]:
        return self.shell.user_ns

    def run(self, text: str, cell_id: str | None = None) -> Ran:
        """Run a cell, whatever comes of it."""
        with capture_output(display=False) as said:
            result = self.shell.run_cell(text, store_history=True, cell_id=cell_id)
        error = result.error_before_exec or result.error_in_exec
        return Ran(_COLOUR.sub("", said.stdout), said.stderr, result.result, error)

    def ok(self, text: str, cell_id: str | None = None) -> Ran:
        """Run a cell that must come to its end."""
        ran = self.run(text, cell_id)
        assert ran.error is None, ran.out
        assert ran.err == ""
        return ran


@contextmanager
def started() -> Iterator[InteractiveShell]:
    """The shell of this process; afterwards there is none."""
    config = Config()
    config.HistoryManager.enabled = False
    shell = InteractiveShell.instance(config=config)
    try:
        yield shell
    finally:
        shell.restore_sys_module_state()
        InteractiveShell.clear_instance()


@contextmanager
def loaded(shell: InteractiveShell) -> Iterator[Notebook]:
    """The extension in the shell; afterwards it is gone, and so are the test's variables."""
    before = set(shell.user_ns)
    nbseed.load_ipython_extension(shell)
    try:
        yield Notebook(shell)
    finally:
        nbseed.unload_ipython_extension(shell)
        shell.config.pop("NBSeed", None)  # what %config has set stays with the shell
        for name in set(shell.user_ns) - before:
            del shell.user_ns[name]
