"""The pure rewrite of a cell, text to text and tree to tree; it may run any number of times.

IPython turns ``%%seed 3`` and a body into ``get_ipython().run_cell_magic('seed', '3', BODY)``. A
magic that ran the body itself could not await, would lose errors and fire the cell hooks twice. So
the call is unfolded: the magic is called with an empty body, and the body follows as ordinary code
that IPython runs, on the lines where it stood.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

UNFOLDED = ("seed", "rngcheckpoint")
FOLLOWS = "\n"
"""The body that a cell magic is called with when its body follows it. (IPython refuses ``''``.)"""


@dataclass(frozen=True)
class Call:
    """``%%magic arguments`` at the head of a cell, and its body."""

    magic: str
    arguments: str
    body: str


def call_of(node: ast.AST) -> Call | None:
    """The call of one of our cell magics that a statement is, else None."""
    match node:
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(
                    value=ast.Call(func=ast.Name(id="get_ipython"), args=[], keywords=[]),
                    attr="run_cell_magic",
                ),
                args=[
                    ast.Constant(value=str(magic)),
                    ast.Constant(value=str(arguments)),
                    ast.Constant(value=str(body)),
                ],
                keywords=[],
            )
        ) if magic in UNFOLDED:
            return Call(magic, arguments, body)
    return None


def unfold(lines: list[str], transform: Callable[[str], str]) -> list[str]:
    """The lines of a transformed cell, with our cell magics unfolded.

    Parameters
    ----------
    lines
        A cell after IPython's own transformations.
    transform
        IPython's transformation of a whole cell, for the body: it may hold magics of its own.
    """
    if not lines or not lines[0].startswith("get_ipython().run_cell_magic("):
        return lines
    try:
        tree = ast.parse("".join(lines))
    except SyntaxError:
        return lines
    call = call_of(tree.body[0]) if len(tree.body) == 1 else None
    if call is None or not call.body.strip():
        return lines
    head = f"get_ipython().run_cell_magic({call.magic!r}, {call.arguments!r}, {FOLLOWS!r})\n"
    rest = call.body.splitlines(keepends=True)
    blank = next(index for index, line in enumerate(rest) if line.strip())
    body = ["\n"] * blank + transform(call.body).splitlines(keepends=True)
    first = _behind_future_imports(body)
    if first:  # nothing may stand before them, so the call shares the last one's line
        body[first - 1] = f"{body[first - 1].rstrip()}; {head}"
        return ["\n", *body]
    return [head, *body]


def _behind_future_imports(lines: list[str]) -> int:
    """The number of lines up to the end of a cell's last ``from __future__ import``, or 0."""
    if not any("__future__" in line for line in lines):
        return 0
    try:
        tree = ast.parse("".join(lines))
    except SyntaxError:
        return 0
    return max((node.end_lineno or 0 for node in tree.body if _is_future(node)), default=0)


def _is_future(node: ast.AST) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _leads(node: ast.AST) -> bool:
    """Whether a statement may stand before the call: a docstring, an import from the future."""
    match node:
        case ast.Expr(value=ast.Constant(value=str())):
            return True
    return _is_future(node)


def repeat(tree: ast.Module, times: int, display: bool) -> ast.Module:
    """The tree of a checkpointed cell with its body `times` times, each behind the magic's call.

    Statements stay on their lines. IPython displays the value of the last one; with `display` the
    other rounds hand theirs to the display hook as well.
    """
    before, part_of_each = _split(tree)
    if times < 2 or all(call_of(node) is not None for node in part_of_each):
        return tree
    rounds = before
    for number in range(times):
        part = copy.deepcopy(part_of_each)
        if display and number < times - 1 and isinstance(part[-1], ast.Expr):
            part[-1].value = _call(_get_ipython("displayhook"), [part[-1].value])
        rounds += part
    return ast.fix_missing_locations(ast.Module(rounds, tree.type_ignores))


def _split(tree: ast.Module) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """The calls of our other magics around the checkpoint magic's, and that one with the rest."""
    for index, node in enumerate(tree.body):
        call = call_of(node)
        if call is None and _leads(node):
            continue
        if call is None:
            break
        if call.magic == "rngcheckpoint":
            return tree.body[:index], tree.body[index:]
    return [], []


def checkpoint_arguments(tree: ast.Module) -> str | None:
    """The argument text of the ``%%rngcheckpoint`` that heads a cell, else None."""
    for node in tree.body:
        call = call_of(node)
        if call is None and _leads(node):
            continue
        if call is None or call.body != FOLLOWS:
            return None
        if call.magic == "rngcheckpoint":
            return call.arguments
    return None


def assigned(tree: ast.AST) -> set[str]:
    """Every name that a tree assigns anywhere, in its functions too."""
    nodes = list(ast.walk(tree))
    names = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return names | {name.id for node in nodes for name in _captured(node)}


def runs_a_script(tree: ast.AST) -> bool:
    """Whether a cell runs a script on the notebook's own variables: ``%run -i``."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Attribute(attr="run_line_magic"),
                args=[ast.Constant(value="run"), ast.Constant(value=str(line))],
            ) if re.match(r"(.*\s)?-[a-z]*i", line):
                return True
    return False


class _Track(ast.NodeTransformer):
    """Hands each value that is assigned to one of some names to ``nbseed``."""

    def __init__(self, names: set[str]) -> None:
        self.names = names

    def visit_Assign(self, node: ast.Assign) -> ast.AST | list[ast.AST]:
        self.generic_visit(node)
        match node.targets:
            case [ast.Name(id=name)] if name in self.names:
                node.value = self._through(name, node.value)
                return node
        return self._behind(node, *node.targets)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | list[ast.AST]:
        self.generic_visit(node)
        return node if node.value is None else self._behind(node, node.target)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST | list[ast.AST]:
        self.generic_visit(node)
        return self._behind(node, node.target)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.AST:
        self.generic_visit(node)
        if node.target.id in self.names:
            node.value = self._through(node.target.id, node.value)
        return node

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        node.body[:0] = self._records(node.target)
        return node

    def visit_AsyncFor(self, node: ast.AsyncFor) -> ast.AST:
        self.generic_visit(node)
        node.body[:0] = self._records(node.target)
        return node

    def visit_With(self, node: ast.With) -> ast.AST:
        self.generic_visit(node)
        node.body[:0] = self._records(*(i.optional_vars for i in node.items if i.optional_vars))
        return node

    def visit_AsyncWith(self, node: ast.AsyncWith) -> ast.AST:
        self.generic_visit(node)
        node.body[:0] = self._records(*(i.optional_vars for i in node.items if i.optional_vars))
        return node

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        self.generic_visit(node)
        names = [name for part in ast.walk(node.pattern) for name in _captured(part)]
        node.body[:0] = self._records(*names)
        return node

    def _behind(self, node: ast.stmt, *targets: ast.expr) -> ast.AST | list[ast.AST]:
        records = self._records(*targets)
        return [node, *records] if records else node

    def _records(self, *targets: ast.expr) -> list[ast.stmt]:
        return [
            ast.copy_location(
                ast.Expr(self._call("assigned", name.id, ast.Name(name.id, ast.Load()))), name
            )
            for target in targets
            for name in _stored(target)
            if name.id in self.names
        ]

    def _through(self, name: str, value: ast.expr) -> ast.expr:
        return ast.copy_location(self._call("passed_through", name, value), value)

    def _call(self, function: str, name: str, value: ast.expr) -> ast.expr:
        package = _call(ast.Name("__import__", ast.Load()), [ast.Constant("nbseed")])
        losses = ast.Attribute(package, "losses", ast.Load())
        target = ast.Attribute(losses, function, ast.Load())
        return _call(target, [ast.Constant(name), value])


def track(tree: ast.Module, names: Iterable[str]) -> ast.Module:
    """The tree, recording each value that is assigned to one of `names`; lines stay as they are."""
    wanted = set(names)
    if not wanted:
        return tree
    return ast.fix_missing_locations(_Track(wanted).visit(tree))  # type: ignore[no-any-return]


def _stored(target: ast.expr) -> list[ast.Name]:
    """The names that a target assigns; those inside its subscripts are other matters."""
    match target:
        case ast.Name():
            return [target]
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return [name for part in parts for name in _stored(part)]
        case ast.Starred(value=part):
            return _stored(part)
    return []


def _captured(node: ast.AST) -> list[ast.Name]:
    """The name that a part of a ``case`` pattern assigns."""
    match node:
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            return [ast.copy_location(ast.Name(name, ast.Store()), node)]
        case ast.MatchMapping(rest=str(name)):
            return [ast.copy_location(ast.Name(name, ast.Store()), node)]
    return []


def _get_ipython(attribute: str) -> ast.expr:
    shell = _call(ast.Name("get_ipython", ast.Load()), [])
    return ast.Attribute(shell, attribute, ast.Load())


def _call(function: ast.expr, arguments: list[ast.expr]) -> ast.Call:
    return ast.Call(function, arguments, [])


def body_of(text: str) -> str:
    """A raw cell without its leading magic lines up to and including ``%%rngcheckpoint``."""
    lines = text.splitlines(keepends=True)
    for index, line in enumerate(lines):
        if line.lstrip().startswith("%%rngcheckpoint"):
            return "".join(lines[index + 1 :])
        if line.strip() and not line.lstrip().startswith("%%"):
            break
    return text


def arguments_of(text: str) -> str | None:
    """The argument text of ``%%rngcheckpoint`` among a raw cell's leading magic lines, or None."""
    for line in text.splitlines():
        head, _, arguments = line.strip().partition(" ")
        if head == "%%rngcheckpoint":
            return arguments
        if head and not head.startswith("%%"):
            break
    return None
