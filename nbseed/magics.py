"""The magics: parse, call one function, show one sentence."""

from __future__ import annotations

import ast
import functools
import hashlib
import os
from pathlib import Path
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments
from IPython.utils.text import DollarFormatter
from traitlets import Bool, Float, Int, Unicode, default, observe

from . import actions, cells, checkpoints, losses, seeding, watch
from .arguments import arguments, check_tracked, names_of, seed_number
from .cells import FOLLOWS
from .checkpoints import CHECKPOINTS
from .frames import Frames, how_it_ended
from .ledger import LEDGER
from .recording import BUDGET
from .show import show_report, warn_of_fault, worded
from .store import MOST, PATH, Store
from .text import parsed, text_of

MAX_REPEATS = 1000  # each is a copy of the body's tree


@magics_class
class NBSeed(Magics):
    """Settings of nbseed. ``%config NBSeed`` lists them."""

    report = Bool(True, help="Show a line after each checkpointed cell.").tag(config=True)
    max_runs = Int(checkpoints.MAX_RUNS, min=2, help="Runs kept for one cell.").tag(config=True)
    max_checkpoints = Int(
        checkpoints.MAX_CHECKPOINTS, min=1, help="Checkpoints kept in memory, over all cells."
    ).tag(config=True)

    compare_seconds = Float(
        BUDGET,
        min=0,
        help="Seconds in each run for comparing variables with what the first run met; 0: never.",
    ).tag(config=True)

    store = Unicode(
        help="The file of --keep, seen from the notebook's folder; NBSEED_STORE in the environment "
        "sets it too.",
    ).tag(config=True)
    store_megabytes = Int(
        MOST // 2**20, min=1, help="How large that file may become: the oldest runs go first."
    ).tag(config=True)

    def __init__(self, shell: Any, **kwargs: Any) -> None:
        super().__init__(shell, **kwargs)
        self._open_store()
        self.shell: Any  # never None here
        self.frames = Frames()
        self._hinted = False
        # The number of the next cell, known between two: IPython 8 counts on when a cell ends,
        # IPython 9 before `pre_run_cell`.
        self._number = shell.execution_count

    @default("store")
    def _usual_store(self) -> str:
        return os.environ.get("NBSEED_STORE") or str(PATH)

    @observe("store", "store_megabytes")
    def _open_store(self, change: Any = None) -> None:
        CHECKPOINTS.store = Store(Path(self.store).expanduser(), self.store_megabytes * 2**20)

    # -- %seed and %%seed --------------------------------------------------------------------------

    @worded
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
    @argument(
        "--strict",
        action="store_true",
        help="In later cells make it an error to take entropy that no seed controls, such as "
        "default_rng() without a seed or uuid4().",
    )
    @argument(
        "--pin-entropy",
        action="store_true",
        help="In later cells feed NumPy's generators that have no seed from N.",
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

        ``--strict`` finds what no seed controls, at the line where it is; ``--pin-entropy`` makes
        NumPy's part of it repeat: it is in every checkpoint as ``numpy.entropy``.

        Examples
        --------
        ::

            %seed 3
            %seed {config["seed"]} --deterministic
            %seed 3 --each-cell
        """
        args = arguments(self.seed, line)
        if args.new and args.seed is not None:
            raise UsageError(f"--new picks a seed; {args.seed} was given too")
        number = seeding.new_seed() if args.new else seed_number(args.seed)
        if cell is not None:
            self._seed_cell(number, args, cell)
            return
        if number is None:
            if args.deterministic or args.each_cell or args.strict or args.pin_entropy:
                raise UsageError(
                    "the options need a seed: "
                    "%seed N [--deterministic] [--each-cell] [--strict] [--pin-entropy]"
                )
            print(actions.in_force())
            return
        said = actions.seed(
            number,
            deterministic=args.deterministic,
            each_cell=args.each_cell,
            strict=args.strict,
            pin_entropy=args.pin_entropy,
            cell=self.frames.checkpointed(),
        )
        self._guard()
        print(said)

    def _guard(self) -> None:
        """Let entropy be refused or fed from now on to the end of the cell, if that is in force."""
        regime, frame = seeding.in_force(), self.frames.outermost
        if regime is None or frame is None or frame.guarded:
            return
        if regime.strict or regime.pin_entropy:
            frame.guarded = True
            frame.begin(watch.guarded(self.shell.user_ns, _is_strict))

    def _seed_cell(self, number: int | None, args: Any, cell: str) -> None:
        if number is None:
            raise UsageError("%%seed needs a seed: %%seed N")
        if args.deterministic or args.each_cell or args.strict or args.pin_entropy:
            raise UsageError("%%seed takes a seed only; the options belong to %seed")
        frame = self.frames.innermost
        if cell != FOLLOWS or frame is None:
            raise UsageError("%%seed stands at the head of a cell, not inside its code")
        frame.begin(seeding.isolated(number))
        if args.new:
            print(f"this cell runs under seed {number}")

    # -- %%rngcheckpoint ---------------------------------------------------------------------------

    @worded
    @magic_arguments("%rngcheckpoint")  # shown behind one more percent sign
    @argument("name", nargs="?", metavar="NAME", help="What the checkpoint is called.")
    @argument("--runs", type=int, default=1, metavar="K", help="Run the body K times.")
    @argument(
        "--track",
        default="",
        metavar="NAMES",
        help="Record these variables, separated by commas, each time the cell assigns them.",
    )
    @argument(
        "--with",
        dest="carry",
        default="",
        metavar="NAMES",
        help="Put these variables back too, separated by commas: models and optimizers in place, "
        "others as a copy.",
    )
    @argument(
        "--probe",
        action="store_true",
        help="Run with torch's deterministic algorithms, and name the operators that have none.",
    )
    @argument("--isolate", action="store_true", help="Leave the generators as they were before.")
    @argument("--reset", action="store_true", help="Take the snapshot anew.")
    @argument(
        "--keep",
        action="store_true",
        help="Keep checkpoint and runs on disk, beside the notebook: in a new kernel the cell "
        "rewinds to the same snapshot and is compared with its earlier runs.",
    )
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

            %%rngcheckpoint train --with model,optimizer

            %%rngcheckpoint train --keep
        """
        args = arguments(self.rngcheckpoint, line)
        if cell is None:
            raise UsageError("%%rngcheckpoint stands at the head of a cell, with two % signs")
        if not 1 <= args.runs <= MAX_REPEATS:
            raise UsageError(f"--runs takes a number from 1 to {MAX_REPEATS}, got {args.runs}")
        if args.name is not None and args.name.startswith("-"):
            raise UsageError(f"unknown option {args.name}")
        if cell != FOLLOWS:
            raise UsageError("%%rngcheckpoint stands at the head of a cell, not inside its code")
        frame = self.frames.innermost
        if frame is None:
            raise UsageError("%%rngcheckpoint works in a cell")
        body = cells.body_of(frame.text)
        identity, name, by_text = self._identity(args.name, body)
        # The same cell again: --runs, or %%timeit around it. What began inside it ends with it.
        frame.end_run(identity)
        tracked = names_of(args.track)
        tree = parsed(body, self.shell.transform_cell)
        if tree is not None:
            check_tracked(tracked, tree)
        CHECKPOINTS.max_runs = self.max_runs
        CHECKPOINTS.max_checkpoints = self.max_checkpoints
        CHECKPOINTS.budget = self.compare_seconds
        running = CHECKPOINTS.begin(
            identity,
            name,
            text_of(frame.text, body, tree, self.shell.transform_cell, self.shell.user_ns, tracked),
            self.shell.user_ns,
            carry=names_of(args.carry, "--with"),
            reset=args.reset and identity not in frame.begun,
            isolate=args.isolate,
            probe=args.probe,
            keep=args.keep,
        )
        if by_text and running.is_first:
            running.notes.append(
                "this cell is known by its text alone: an edit makes a new "
                "checkpoint; %%rngcheckpoint NAME keeps it"
            )
        frame.begin(running)

    def _identity(self, name: str | None, body: str) -> tuple[str, str, bool]:
        """The cell's identity, its name, and whether the identity is only its text."""
        if name is not None:
            return f"name:{name}", name, False
        frame = self.frames.innermost
        if frame is not None and (cell_id := frame.cell_id) is not None:
            return f"id:{cell_id}", f"cell-{cell_id[:8]}", False
        key = hashlib.blake2b(body.encode(), digest_size=4).hexdigest()
        return f"text:{body}", f"cell-{key}", True

    def _name_in(self, text: str) -> str | None:
        """The NAME behind the ``%%rngcheckpoint`` of a raw cell, if there is one."""
        line = cells.arguments_of(text)
        if line is None:
            return None
        try:
            name: str | None = arguments(self.rngcheckpoint, self._expanded(line)).name
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

    # -- scopes that end with the cell -------------------------------------------------------------

    def enter(self, info: Any) -> None:
        """``pre_run_cell``: a cell begins."""
        text, cell_id = info.raw_cell, getattr(info, "cell_id", None)
        regime = seeding.in_force()
        outermost = self.frames.enter(text, cell_id)
        self._guard()
        if outermost:
            LEDGER.enter(self._label(text), text)
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
        self._number = self.shell.execution_count
        info = getattr(result, "info", None)
        if info is not None and not (info.raw_cell or "").strip():
            return  # an empty cell comes without its beginning
        frame = self.frames.leave(info)
        if frame is not None:
            status, error = how_it_ended(result)
            on_fault = functools.partial(warn_of_fault, "the end of the cell")
            frame.end(status, error, on_fault, getattr(result, "result", None))
            if not self.frames.innermost:
                observed = [e.run.observed for e in frame.ended if e.run.observed is not None]
                known = observed[-1].draws if observed else {}
                LEDGER.leave(frame.text, known)
            if frame.ended and self.report:
                show_report(frame.ended)
            if not self.frames.innermost:
                LEDGER.tell(frame.ended)

    def _label(self, text: str) -> str:
        """``[7] train``: a cell's number, and its checkpoint's name if it was given one."""
        name = self._name_in(text)
        return f"[{self._number}]" + (f" {name}" if name else "")

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
                args = arguments(self.rngcheckpoint, self._expanded(line))
                runs, names = args.runs, names | set(names_of(args.track))
            except Exception:  # the magic meets the same arguments and says what is wrong
                return tree
        tree = cells.track(tree, names)
        if 1 < runs <= MAX_REPEATS:
            tree = cells.repeat(tree, runs, self.shell.ast_node_interactivity != "none")
        return tree


def _is_strict() -> bool:
    regime = seeding.in_force()
    return regime is not None and regime.strict
