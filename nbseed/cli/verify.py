"""``nbseed verify``: does a notebook give the same again?"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .. import seeding
from ..errors import CannotTellError
from ..files import write_whole
from ..verify import pages
from ..verify.compare import Verdict
from ..verify.execution import TIMEOUT, Cell, Settings
from ..verify.notebook import verify

SAME, DIFFERS, CANNOT_TELL = 0, 1, 2


def add_to(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "verify",
        help="run notebooks twice in fresh kernels, and compare every cell",
        description="Runs each notebook in fresh kernels, in its folder, and compares cell by cell "
        "what it draws from every generator, the losses and the outputs; and what nbseed has left "
        "in the saved notebook. The file itself is not changed. A cell whose first line is "
        "'# nbseed: skip', or with the tag nbseed-skip, is run and not compared. Exit code 0: "
        "reproducible; 1: not; 2: could not tell.",
    )
    parser.add_argument("notebooks", nargs="+", type=Path, metavar="NOTEBOOK")
    parser.add_argument(
        "--runs", type=_runs, default=2, metavar="K", help="how many times (default: 2)"
    )
    parser.add_argument(
        "--seed",
        type=_seed,
        metavar="N",
        help="seed every generator first: does that make it reproducible?",
    )
    parser.add_argument(
        "--timeout",
        type=_seconds,
        default=TIMEOUT,
        metavar="S",
        help=f"seconds for one cell (default: {TIMEOUT:g})",
    )
    parser.add_argument(
        "--kernel", default="", metavar="NAME", help="instead of the one that the notebook names"
    )
    parser.add_argument(
        "--ignore-saved",
        action="store_true",
        help="do not compare with what the saved notebook holds",
    )
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a report")
    parser.add_argument(
        "--json", action="store_true", help="print JSON; progress goes to stderr in any case"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Carry out ``nbseed verify``; returns the exit code, the worst of all notebooks."""
    if args.html is not None:
        write_whole(args.html, pages.page([]).encode())  # know it before the work, not after
    settings = Settings(args.kernel, args.seed, args.timeout)
    verdicts: list[Verdict] = []
    troubles: list[tuple[str, str]] = []
    for number, path in enumerate(args.notebooks):
        try:
            verdict = verify(path, settings, args.runs, not args.ignore_saved, _Progress(path.name))
        except CannotTellError as error:
            troubles.append((str(path), str(error)))
            if not args.json:
                _say(f"{'' if number == 0 else chr(10)}{path}: could not tell: {error}")
        else:
            verdicts.append(verdict)
            if not args.json:
                _say(f"{'' if number == 0 else chr(10)}{pages.text(verdict)}")
    if args.json:
        _say(json.dumps(pages.data(verdicts, troubles), indent=1, ensure_ascii=False))
    if args.html is not None:
        write_whole(args.html, pages.page(verdicts, troubles).encode("utf-8", "replace"))
    if troubles:
        return CANNOT_TELL
    return SAME if all(verdict.is_reproducible for verdict in verdicts) else DIFFERS


class _Progress:
    """A line on stderr: where a person looks on it is written over, else it is one for each run."""

    def __init__(self, name: str) -> None:
        self.name, self.is_seen, self._width = name, sys.stderr.isatty(), 0

    def __call__(self, number: int, runs: int) -> Callable[[Cell, int], None]:
        began = time.perf_counter()
        if not number:
            self._over("")
        elif not self.is_seen:
            print(f"{self.name}: run {number} of {runs}", file=sys.stderr, flush=True)

        def told(cell: Cell, count: int) -> None:
            seconds = time.perf_counter() - began
            self._over(
                f"{self.name}: run {number} of {runs}, cell {cell.number} of {count}, "
                f"{seconds:.0f} s  {cell.first_line}"
            )

        return told

    def _over(self, text: str) -> None:
        if self.is_seen:
            sys.stderr.write(f"\r{text[:100].ljust(self._width)}{'' if text else chr(13)}")
            sys.stderr.flush()
            self._width = min(len(text), 100)


def _runs(text: str) -> int:
    if not text.isdecimal() or not 2 <= int(text) <= 100:
        raise argparse.ArgumentTypeError(f"a number from 2 to 100, got {text}")
    return int(text)


def _seed(text: str) -> int:
    try:
        return seeding.check_seed(int(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"an integer from 0 to {2**32 - 1}, got {text}") from None


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e9:
        raise argparse.ArgumentTypeError(f"a number of seconds, got {text}")
    return seconds


def _say(text: str) -> None:
    print(text, flush=True)
