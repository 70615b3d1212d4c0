"""``pytest --nbseed notebooks/``: each notebook is an item that passes if it is reproducible.

pytest loads this module wherever nbseed is installed; without the option it does nothing more.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ..errors import CannotTellError

if TYPE_CHECKING:
    from .compare import Verdict


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options, as ``nbseed verify`` has them."""
    group = parser.getgroup("nbseed", "notebooks that give the same again")
    group.addoption(
        "--nbseed", action="store_true", help="Run notebooks twice in fresh kernels, and compare."
    )
    group.addoption("--nbseed-runs", type=int, default=2, metavar="K", help="How many times.")
    group.addoption("--nbseed-seed", type=int, metavar="N", help="Seed every generator first.")
    group.addoption(
        "--nbseed-timeout", type=float, default=600.0, metavar="S", help="Seconds for one cell."
    )
    group.addoption(
        "--nbseed-kernel", default="", metavar="NAME", help="Instead of the notebook's own."
    )
    group.addoption(
        "--nbseed-ignore-saved", action="store_true", help="Leave out what the file holds."
    )


def pytest_configure(config: pytest.Config) -> None:
    """Options that make no sense are said before anything is collected."""
    if not config.getoption("nbseed"):
        return
    from ..seeding import check_seed

    if not 2 <= config.getoption("nbseed_runs") <= 100:
        raise pytest.UsageError("--nbseed-runs takes a number from 2 to 100")
    if not config.getoption("nbseed_timeout") > 0:
        raise pytest.UsageError("--nbseed-timeout takes a number of seconds")
    try:
        if config.getoption("nbseed_seed") is not None:
            check_seed(config.getoption("nbseed_seed"))
    except ValueError:
        raise pytest.UsageError("--nbseed-seed takes an integer from 0 to 4294967295") from None


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """A notebook is collected if the option is given; checkpoints of Jupyter's are no notebooks."""
    if not parent.config.getoption("nbseed") or file_path.suffix != ".ipynb":
        return None
    if ".ipynb_checkpoints" in file_path.parts:
        return None
    return NotebookFile.from_parent(parent, path=file_path)


class NotebookFile(pytest.File):
    """A notebook's file, with one item in it."""

    def collect(self) -> Iterator[pytest.Item]:
        """The notebook."""
        yield NotebookItem.from_parent(self, name="reproducible")


class NotebookItem(pytest.Item):
    """Whether a notebook is reproducible."""

    def runtest(self) -> None:
        """Run it, and fail with what differs."""
        from .execution import Settings
        from .notebook import verify

        option = self.config.getoption
        settings = Settings(
            option("nbseed_kernel"), option("nbseed_seed"), option("nbseed_timeout")
        )
        verdict = verify(
            self.path, settings, option("nbseed_runs"), not option("nbseed_ignore_saved")
        )
        if not verdict.is_reproducible:
            raise NotReproducibleError(verdict)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """What differs, without a traceback of ours."""
        from . import pages

        if isinstance(excinfo.value, NotReproducibleError):
            return pages.text(excinfo.value.verdict)
        if isinstance(excinfo.value, CannotTellError):
            return f"{self.path.name}: could not tell: {excinfo.value}"
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where it is, for pytest's lists."""
        return self.path, None, self.path.name


class NotReproducibleError(Exception):
    """The verdict of a notebook that failed."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.name)
        self.verdict = verdict
