"""The magics: parse, call one function, show one sentence."""

from __future__ import annotations

import ast
import functools
import hashlib
import os
import shlex
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, line_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments
from IPython.display import display
from IPython.utils.text import DollarFormatter
from traitlets import Bool, Int

from . import cells, checkpoints, losses, report, seeding, tables
from .cells import FOLLOWS
from .checkpoints import CHECKPOINTS, Ended, Running
from .errors import CheckpointError, NbseedError
from .reads import names_read, names_used
from .snapshot import restore, snapshot

MAX_REPEATS = 1000  # each is a copy of the body's tree
_Method = TypeVar("_Method", bound=Callable[..., Any])


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
    """

    text: str
    cell_id: str | None
    scopes: list[Running | AbstractContextManager[None]] = field(default_factory=list)
    ended: list[Ended] = field(default_factory=list)
    begun: set[str] = field(default_factory=set)


def _worded(method: _Method) -> _Method:
    """Our own errors as one line for the user; a fault as a warning, and the cell runs on."""

    @functools.wraps(method)
    def call(self: NBSeed, *args: Any, **kwargs: Any) -> Any:
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


def warn_of_fault(where: str, error: BaseException) -> None:
    """One line on a fault of nbseed's own; the user's cell goes on."""
    sys.stderr.write(
        f"nbseed: {where} failed ({type(error).__name__}: {error}); the cell runs without it\n"
    )


@magics_class
class NBSeed(Magics):
    """Settings of nbseed. ``%config NBSeed`` lists them."""

    report = Bool(True, help="Show a line after each checkpointed cell.").tag(config=True)
    max_runs = Int(checkpoints.MAX_RUNS, min=2, help="Runs kept for one cell.").tag(config=True)
    max_checkpoints = Int(
        checkpoints.MAX_CHECKPOINTS, min=1, help="Checkpoints kept in memory, over all cells."
    ).tag(config=True)

    def __init__(self, shell: Any, **kwargs: Any) -> None:
        super().__init__(shell, **kwargs)
        self.shell: Any  # never None here
        self.frames: list[Frame] = []
        self._hinted = False

    # -- %seed and %%seed --------------------------------------------------------------------------

    @_worded
    @magic_arguments()
    @argument("seed", nargs="?", metavar="N", help="An integer from 0 to 2**32 - 1.")
    @argument(
        "--deterministic",
        action="store_true",
        help="Also set cuDNN's and torch's switches for repeatable arithmetic, turn TF32 off, and "
        "say what that costs or what comes too late.",
    )
    @argument(
        "--each-cell",
        action="store_true",
        help="Give every later cell a seed of its own, derived from N and the cell's identity, so "
        "that cells can be run in any order with the same draws.",
    )
    @argument("--new", action="store_true", help="Pick a seed from the operating system, show it.")
    @line_cell_magic
    def seed(self, line: str, cell: str | None = None) -> None:
        """Seed every generator: Python, NumPy, torch and its devices, and what plugs in.

        ``%seed 3`` does bit for bit what ``random.seed(3)``, ``numpy.random.seed(3)`` and
        ``torch.manual_seed(3)`` do. Libraries that are not imported yet are seeded when they are;
        devices that have not started, when they start. ``%seed`` alone shows what is in force.

        ``%%seed 3`` at the head of a cell runs that cell under seed 3 and puts every generator back
        where it was, also after an error or an interrupt.

        Each call states the whole of it: ``%seed 4`` after ``%seed 3 --deterministic --each-cell``
        ends both options.

        Examples
        --------
        ::

            %seed 3
            %seed {config["seed"]} --deterministic
            %seed 3 --each-cell
        """
        args = _arguments(self.seed, line)
        if args.new and args.seed is not None:
            raise UsageError(f"--new picks a seed; {args.seed} was given too")
        number = seeding.new_seed() if args.new else _number(args.seed)
        if cell is not None:
            self._seed_cell(number, args, cell)
            return
        if number is None:
            if args.deterministic or args.each_cell:
                raise UsageError("the options need a seed: %seed N [--deterministic] [--each-cell]")
            print(_in_force())
            return
        seeded = seeding.seed(
            number,
            deterministic=args.deterministic,
            each_cell=args.each_cell,
            cell=self._checkpointed_cell(),
        )
        print(_seeded(number, seeded, args.each_cell))

    def _seed_cell(self, number: int | None, args: Any, cell: str) -> None:
        if number is None:
            raise UsageError("%%seed needs a seed: %%seed N")
        if args.deterministic or args.each_cell:
            raise UsageError("%%seed takes a seed only; the options belong to %seed")
        scope = seeding.isolated(seeding.check_seed(number))
        self._begin(scope, cell, "%%seed")
        if args.new:
            print(f"this cell runs under seed {number}")

    # -- %%rngcheckpoint ---------------------------------------------------------------------------

    @_worded
    @magic_arguments()
    @argument("name", nargs="?", metavar="NAME", help="What the checkpoint is called.")
    @argument("--runs", type=int, default=1, metavar="K", help="Run the body K times.")
    @argument(
        "--track",
        default="",
        metavar="NAMES",
        help="Record these variables, separated by commas, each time the cell assigns them.",
    )
    @argument("--isolate", action="store_true", help="Leave the generators as they were before.")
    @argument("--reset", action="store_true", help="Take the snapshot anew.")
    @line_cell_magic
    def rngcheckpoint(self, line: str, cell: str | None = None) -> None:
        """Re-run this cell with the same random draws.

        The first run takes a snapshot of every generator: Python, NumPy, torch and all its devices,
        and the generator objects that the cell's variables reach. Each later run rewinds to it.
        After the cell one line says whether the draws and the losses were the same.

        The cell is known by NAME, else by the identity that the front end gives it, else by the
        text of its body. A checkpoint belongs to the seed in force: after ``%seed 4`` the cell gets
        a new one, and back at ``%seed 3`` the old one counts again.

        Losses are recorded by themselves where ``loss.backward()`` is called on a scalar; for
        others there are ``--track`` and ``nbseed.track(name, value)``. ``%losses`` draws them.

        Examples
        --------
        ::

            %%rngcheckpoint train
            for epoch in range(20):
                ...

            %%rngcheckpoint sweep --runs 3 --track score
        """
        args = _arguments(self.rngcheckpoint, line)
        if cell is None:
            raise UsageError("%%rngcheckpoint stands at the head of a cell, with two % signs")
        if not 1 <= args.runs <= MAX_REPEATS:
            raise UsageError(f"--runs takes a number from 1 to {MAX_REPEATS}, got {args.runs}")
        if args.name is not None and args.name.startswith("-"):
            raise UsageError(f"unknown option {args.name}")
        if cell != FOLLOWS:
            raise UsageError("%%rngcheckpoint stands at the head of a cell, not inside its code")
        frame = self.frames[-1] if self.frames else None
        if frame is None:
            raise UsageError("%%rngcheckpoint works in a cell")
        body = cells.body_of(frame.text)
        identity, name, by_text = self._identity(args.name, body)
        for scope in reversed(frame.scopes):  # the same cell again: --runs, or %%timeit around it
            if isinstance(scope, Running) and scope.cell == identity:
                self._end(frame, scope, "ok", None)
                break
        tracked = _names(args.track)
        tree = self._parsed(body)
        if tree is not None:
            _check_tracked(tracked, tree)
        everything = tuple(self.shell.user_ns) if tree and cells.runs_a_script(tree) else ()
        CHECKPOINTS.max_runs = self.max_runs
        CHECKPOINTS.max_checkpoints = self.max_checkpoints
        running = CHECKPOINTS.begin(
            identity,
            name,
            body,
            reads=everything or (names_read(tree) if tree else ()),
            uses=everything or (names_used(tree) if tree else ()),
            tracked=tracked,
            reset=args.reset and identity not in frame.begun,
            isolate=args.isolate,
        )
        if by_text and running.is_first:
            running.notes.append(
                "this front end gives the cell no identity, so its text is: an edit makes a new "
                "checkpoint; %%rngcheckpoint NAME keeps it"
            )
        frame.scopes.append(running)
        frame.begun.add(identity)

    def _identity(self, name: str | None, body: str) -> tuple[str, str, bool]:
        """The cell's identity, its name, and whether the identity is only its text."""
        if name is not None:
            return f"name:{name}", name, False
        cell_id = self.frames[-1].cell_id
        if cell_id is not None:
            return f"id:{cell_id}", f"cell-{cell_id[:8]}", False
        key = hashlib.blake2b(body.encode(), digest_size=4).hexdigest()
        return f"text:{body}", f"cell-{key}", True

    def _name_in(self, text: str) -> str | None:
        """The NAME behind the ``%%rngcheckpoint`` of a raw cell, if there is one."""
        arguments = cells.arguments_of(text)
        if arguments is None:
            return None
        try:
            name: str | None = _arguments(self.rngcheckpoint, self._expanded(arguments)).name
            return name
        except UsageError:
            return None  # the magic says so when it runs

    def _expanded(self, line: str) -> str:
        """A line with its ``{expr}`` and ``$var``, as IPython expands them for a magic.

        ``shell.var_expand`` would see the local variables of this module as well.
        """
        try:
            expanded: str = DollarFormatter().vformat(line, args=[], kwargs=self.shell.user_ns)
            return expanded
        except Exception:  # IPython leaves such a line as it is, too
            return line

    def _parsed(self, body: str) -> ast.Module | None:
        try:
            tree: ast.Module = ast.parse(self.shell.transform_cell(body))
            return tree
        except (SyntaxError, ValueError):
            return None

    # -- scopes that end with the cell -------------------------------------------------------------

    def _begin(self, scope: AbstractContextManager[None], cell: str, magic: str) -> None:
        if cell != FOLLOWS or not self.frames:
            raise UsageError(f"{magic} stands at the head of a cell, not inside its code")
        scope.__enter__()
        self.frames[-1].scopes.append(scope)

    def _checkpointed_cell(self) -> str | None:
        """The identity of the checkpointed cell that runs now."""
        for frame in reversed(self.frames):
            for scope in reversed(frame.scopes):
                if isinstance(scope, Running):
                    return scope.cell
        return None

    def enter(self, info: Any) -> None:
        """``pre_run_cell``: a cell begins."""
        text, cell_id = info.raw_cell, getattr(info, "cell_id", None)
        regime = seeding.in_force()
        outermost = not self.frames
        self.frames.append(Frame(text, cell_id))
        if outermost and regime is not None and regime.each_cell:
            identity, _, by_text = self._identity(self._name_in(text), cells.body_of(text))
            seeding.seed_now(seeding.derive(regime.seed, identity))
            if by_text and not self._hinted:
                self._hinted = True
                print(
                    "nbseed: this front end gives cells no identity: with --each-cell a cell's "
                    "seed comes from its text, and an edit changes it"
                )

    def leave(self, result: Any) -> None:
        """``post_run_cell``: the cell has ended, well or not."""
        info = getattr(result, "info", None)
        if info is not None and not (info.raw_cell or "").strip():
            return  # an empty cell comes without its beginning
        frame = self._frame_of(info)
        if frame is None:
            return
        status, error = _how_it_ended(result)
        ended = frame.ended
        for scope in reversed(frame.scopes):
            try:
                if isinstance(scope, Running):
                    ended.append(CHECKPOINTS.end(scope, status, error))
                else:
                    scope.__exit__(None, None, None)
            except Exception as fault:
                if isinstance(scope, Running):
                    CHECKPOINTS.abandon(scope)
                warn_of_fault("the end of the cell", fault)
        if ended and self.report:
            show_report(ended)

    def _frame_of(self, info: Any) -> Frame | None:
        """The frame that ends: that of the same text, with all that was left open inside it."""
        text = getattr(info, "raw_cell", None)
        for index in range(len(self.frames)) if info is None else reversed(range(len(self.frames))):
            if text is None or self.frames[index].text == text:
                frame = self.frames[index]
                for inner in self.frames[index + 1 :]:
                    frame.scopes += inner.scopes
                del self.frames[index:]
                return frame
        return None

    def _end(self, frame: Frame, running: Running, status: str, error: str | None) -> None:
        frame.scopes.remove(running)
        frame.ended.append(CHECKPOINTS.end(running, status, error))

    def close(self) -> None:
        """End what is open, without a word: the extension goes."""
        for frame in reversed(self.frames):
            for scope in reversed(frame.scopes):
                if isinstance(scope, Running):
                    CHECKPOINTS.abandon(scope)
                else:
                    scope.__exit__(None, None, None)
        self.frames.clear()

    # -- the tree of a cell ------------------------------------------------------------------------

    def visit(self, tree: ast.AST) -> ast.AST:
        """The AST transformer: ``--track`` and ``--runs``. It changes the tree and nothing else."""
        if not isinstance(tree, ast.Module):
            return tree
        try:
            return self._rewritten(tree)
        except Exception as error:  # IPython would unregister the transformer
            warn_of_fault("the rewrite of the cell", error)
            return tree

    def _rewritten(self, tree: ast.Module) -> ast.Module:
        names = losses.tracked_names()
        line = cells.checkpoint_arguments(tree)
        runs = 1
        if line is not None:
            try:
                args = _arguments(self.rngcheckpoint, self._expanded(line))
                runs, names = args.runs, names | set(_names(args.track))
            except Exception:  # the magic meets the same arguments and says what is wrong
                return tree
        tree = cells.track(tree, names)
        if 1 < runs <= MAX_REPEATS:
            tree = cells.repeat(tree, runs, self.shell.ast_node_interactivity != "none")
        return tree

    # -- %rng --------------------------------------------------------------------------------------

    @_worded
    @line_magic
    def rng(self, line: str) -> Any:
        """Look at the generators and the checkpoints.

        ::

            %rng                   the generators and the fingerprints of their states
            %rng list              the checkpoints
            %rng restore NAME      put the generators back to a checkpoint
            %rng drop NAME         forget a checkpoint and its runs
            %rng diff A [B]        which generators differ between two checkpoints, or A and now
        """
        words = _words("rng", line)
        action, names = (words[0], words[1:]) if words else ("show", [])
        actions = {"show": 0, "list": 0, "restore": 1, "drop": 1, "diff": (1, 2)}
        if action not in actions:
            raise UsageError(f"%rng knows {', '.join(sorted(actions))}; got {action!r}")
        wanted = actions[action]
        counts = wanted if isinstance(wanted, tuple) else (wanted,)
        if len(names) not in counts:
            raise UsageError(f"%rng {action} takes {_counted(counts)}, got {len(names)}")
        return getattr(self, f"_rng_{action}")(*names)

    def _rng_show(self) -> Any:
        return tables.of_generators()

    def _rng_list(self) -> Any:
        return tables.of_checkpoints()

    def _rng_restore(self, name: str) -> None:
        checkpoint = CHECKPOINTS.find(name)
        done = restore(checkpoint.snapshot, strict=False)
        print(f"restored {name}, {checkpoint.snapshot.fingerprint[:8]}: {', '.join(done.names)}")
        for note in checkpoints.left_out(done):
            print(f"  note: {note}")

    def _rng_drop(self, name: str) -> None:
        count = CHECKPOINTS.drop(name)
        print(f"dropped {name}: {count} checkpoint{'' if count == 1 else 's'} and the runs")

    def _rng_diff(self, first: str, second: str | None = None) -> None:
        before = CHECKPOINTS.find(first).snapshot
        after = snapshot() if second is None else CHECKPOINTS.find(second).snapshot
        print(f"{first} and {second or 'now'}: {before.diff(after)}")

    # -- %losses -----------------------------------------------------------------------------------

    @_worded
    @magic_arguments()
    @argument("name", nargs="?", metavar="NAME", help="A checkpoint; by default the latest.")
    @argument("--metric", default="loss", metavar="M", help="What was recorded under this name.")
    @argument("--last", type=int, metavar="K", help="Only the last K runs.")
    @argument("--log", action="store_true", help="A logarithmic axis.")
    @argument("--save", metavar="FILE", help="Write the picture to a file as well.")
    @line_magic
    def losses(self, line: str) -> None:
        """Draw the losses of a cell's runs over each other.

        The title says whether they are bit-identical or where they part; the lower part shows the
        difference from the first run.

        Examples
        --------
        ::

            %losses
            %losses train --metric accuracy --last 5 --save runs.png
        """
        args = _arguments(self.losses, line)
        name = args.name or CHECKPOINTS.latest_name()
        show_losses(self.shell, name, args)


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
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from None
    figure: Any = axes.figure
    if args.save:
        try:
            figure.savefig(os.path.expanduser(args.save), dpi=150)
        except (OSError, ValueError) as error:
            raise UsageError(f"{args.save} was not written: {error}") from None
    said = f"{name}: {verdict(runs, args.metric)}"
    if _is_terminal():
        print(said if args.save else f"{said} (--save FILE writes the picture)")
        return
    bundle, metadata = shell.display_formatter.format(figure)
    if not any(kind.startswith("image/") for kind in bundle):
        bundle["image/png"] = as_png(axes)
    bundle["text/plain"] = said
    display(bundle, raw=True, metadata=metadata)


def _is_terminal() -> bool:
    from IPython.core.getipython import get_ipython

    return not hasattr(get_ipython(), "kernel")


def _arguments(magic: Any, line: str) -> Any:
    """The arguments of a magic, as its decorators declare them."""
    return magic.parser.parse_args(_words(magic.__name__, line))


def _words(magic: str, line: str) -> list[str]:
    """The words of a line; one in quotes may hold blanks."""
    reader = shlex.shlex(line, posix=True)
    reader.whitespace_split = True
    reader.commenters = reader.escape = ""  # Windows' paths hold backslashes
    try:
        return list(reader)
    except ValueError as error:
        raise UsageError(f"%{magic} {line}: {error}") from None


def _number(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return seeding.check_seed(int(text))
    except ValueError:
        raise UsageError(f"N is an integer from 0 to {2**32 - 1}, got {text}") from None


def _names(text: str) -> tuple[str, ...]:
    """The variables of ``--track a,b``."""
    names = tuple(name.strip() for name in text.split(",")) if text else ()
    for name in names:
        if not name.isidentifier():
            raise CheckpointError(f"--track takes variable names and commas, got {text!r}")
    return names


def _check_tracked(names: tuple[str, ...], tree: ast.Module) -> None:
    """A name that is never assigned is a slip; said before the cell runs, not after."""
    if any(
        isinstance(node, ast.Attribute) and node.attr == "run_cell_magic" for node in ast.walk(tree)
    ):
        return  # the code is inside a text
    assigned = cells.assigned(tree)
    for name in names:
        if name not in assigned:
            there = ", ".join(sorted(assigned)) or "nothing"
            raise CheckpointError(f"--track {name}: the cell assigns {there}")


def _how_it_ended(result: Any) -> tuple[str, str | None]:
    if result is None:  # the front end cancelled it
        return "interrupted", None
    error = result.error_before_exec or result.error_in_exec
    if error is None:
        return "ok", None
    # Cancelling is how ipykernel interrupts a cell that awaits.
    if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "CancelledError":
        return "interrupted", None
    name, _, text = type(error).__name__, None, " ".join(str(error).split())
    return "error", f"{name}: {text[:80]}" if text else name


def _seeded(number: int, seeded: seeding.Seeded, each_cell: bool) -> str:
    parts = [f"seed {number}: {', '.join(seeded.names)} seeded"]
    known = {"numpy": "numpy", "torch": "torch"}
    waiting = [known[name] for name in seeded.imports if name in known]
    if waiting:
        parts.append(f"{' and '.join(waiting)} when imported")
    if seeded.devices:
        parts.append(f"{' and '.join(seeded.devices)} when it starts")
    if each_cell:
        parts.append("each later cell under a seed of its own")
    return "\n".join(["; ".join(parts), *(f"  note: {said}" for said in seeded.switches)])


def _in_force() -> str:
    regime = seeding.in_force()
    if regime is None:
        return "no seed in force; %seed N sets one"
    options = [
        said
        for on, said in (
            (regime.deterministic, "deterministic switches on"),
            (regime.each_cell, "each cell under a seed of its own"),
        )
        if on
    ]
    return "; ".join([f"seed {regime.seed} in force", *options])


def _counted(counts: tuple[int, ...]) -> str:
    names = {0: "no name", 1: "one name", 2: "two names"}
    return " or ".join(names[count] for count in counts)
