"""What is put before the user: lines, the report of a cell, the overlay."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar, cast

from IPython.core.error import UsageError
from IPython.core.getipython import get_ipython
from IPython.display import display

from . import report
from .checkpoint import Ended
from .checkpoints import CHECKPOINTS
from .errors import NbseedError

_Method = TypeVar("_Method", bound=Callable[..., Any])


def warn_of_fault(where: str, error: BaseException) -> None:
    """One line on a fault of nbseed's own; the user's cell goes on."""
    sys.stderr.write(
        f"nbseed: {where} failed ({type(error).__name__}: {error}); the cell runs without it\n"
    )


def worded(method: _Method) -> _Method:
    """Our own errors as one line for the user; a fault as a warning, and the cell runs on."""

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        except UsageError:
            raise
        except NbseedError as error:
            raise UsageError(str(error)) from None
        except Exception as error:
            warn_of_fault(method.__name__, error)
            return None

    return cast(_Method, call)


def show_report(ended: list[Ended]) -> None:
    """One output for all the runs of a cell: text, HTML and data."""
    bundle = {
        "text/plain": report.text(ended),
        "text/html": report.as_html(ended),
        report.MIME: report.data(ended),
    }
    if _is_terminal():
        print(bundle["text/plain"])
    else:
        display(bundle, raw=True)


def show_losses(shell: Any, name: str, args: Any) -> None:
    """The overlay as a picture with its verdict as text."""
    from .curves import verdict
    from .overlay import as_png, overlay

    runs = CHECKPOINTS.runs(name)
    try:
        axes = overlay(runs, metric=args.metric, last=args.last, log=args.log)
        said = f"{name}: {verdict(runs[-args.last :] if args.last else runs, args.metric)}"
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from None
    figure: Any = axes.figure
    if args.save:
        try:
            figure.savefig(os.path.expanduser(args.save), dpi=150)
        except (OSError, ValueError) as error:
            raise UsageError(f"{args.save} was not written: {error}") from None
    if _is_terminal():
        print(said if args.save else f"{said} (--save FILE writes the picture)")
        return
    bundle, metadata = shell.display_formatter.format(figure)
    if not any(kind.startswith("image/") for kind in bundle):
        bundle["image/png"] = as_png(axes)
    bundle["text/plain"] = said
    display(bundle, raw=True, metadata=metadata)


def _is_terminal() -> bool:
    return not hasattr(get_ipython(), "kernel")
