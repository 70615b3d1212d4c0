"""The command line: ``nbseed``, also ``python -m nbseed``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from .. import __version__
from ..errors import NbseedError
from . import demo, kernel, verify

CANNOT_TELL = 2
INTERRUPTED = 130  # what shells report for Ctrl-C


class _Parser(argparse.ArgumentParser):
    """Errors in one line, without the usage before them."""

    def error(self, message: str) -> NoReturn:
        self.exit(CANNOT_TELL, f"{self.prog}: {message}; {self.prog} --help shows the options\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv
        The arguments; by default those of the process.

    Returns
    -------
    int
        The exit code: 0 yes, 1 no, 2 could not tell, 130 interrupted.
    """
    try:
        args = _parser().parse_args(argv)
    except SystemExit as end:  # --help, --version, or a wrong argument
        return int(end.code or 0)
    try:
        return int(args.run(args))
    except NbseedError as error:
        print(f"nbseed {args.command}: {error}", file=sys.stderr)
        return CANNOT_TELL
    except BrokenPipeError:  # its reader has gone, as in ``nbseed demo | head``
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CANNOT_TELL
    except KeyboardInterrupt:
        print(f"nbseed {args.command}: interrupted", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:  # Python's own exit code for it is 1, which says "no" here
        said = " ".join(str(error).split())
        print(f"nbseed {args.command}: {type(error).__name__}: {said[:200]}", file=sys.stderr)
        return CANNOT_TELL


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="nbseed",
        description="Re-run notebook cells with identical random draws.",
        epilog="In a notebook: %load_ext nbseed, then %seed 3, and %%rngcheckpoint atop a cell.",
    )
    parser.add_argument("--version", action="version", version=f"nbseed {__version__}")
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True, parser_class=_Parser
    )
    demo.add_to(commands)
    verify.add_to(commands)
    kernel.add_to(commands)
    return parser
