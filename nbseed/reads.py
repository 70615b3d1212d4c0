"""Which variables a cell reads before it assigns them, from its syntax tree alone."""

from __future__ import annotations

import ast
import re
import symtable
from collections.abc import Iterable
from typing import Any

_WORD = re.compile(r"[^\W\d]\w*")


def names_read(tree: ast.Module) -> tuple[str, ...]:
    """The variables that a cell reads, or may read, before it assigns them, in order of reading.

    What only one branch or a loop's body assigns counts as not assigned behind it. The names that a
    function of the cell looks up count where the function is named. Text that is handed to other
    magics (``%run``, ``%%time``) counts word by word; a built-in's name counts too, since it may
    be a variable.
    """
    reader = _Reader()
    try:
        reader.block(tree.body)
    except RecursionError:  # an expression of hundreds of terms
        return _all_names(tree)
    return tuple(reader.read)


def names_used(tree: ast.Module) -> tuple[str, ...]:
    """Every variable that a cell reads or assigns, in no particular order but a fixed one."""
    found = dict.fromkeys(names_read(tree))
    for node in ast.walk(tree):
        found.update(dict.fromkeys(_assigned(node)))
    return tuple(found)


def names_assigned(tree: ast.Module) -> tuple[str, ...]:
    """The variables that a cell itself assigns, in order; not those inside its functions.

    Those of a loop's head are left out: what they hold behind the loop is seldom meant.
    """
    found: dict[str, None] = {}
    todo: list[ast.AST] = list(reversed(tree.body))
    while todo:
        node = todo.pop()
        if not isinstance(node, (ast.Import, ast.ImportFrom)):
            found.update(dict.fromkeys(_assigned(node)))
        if not isinstance(node, _SCOPES):
            heads = (node.target,) if isinstance(node, (ast.For, ast.AsyncFor)) else ()
            children = [child for child in ast.iter_child_nodes(node) if child not in heads]
            todo.extend(reversed(children))
    return tuple(found)


_SCOPES = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.ListComp, ast.SetComp,
    ast.DictComp, ast.GeneratorExp,
)  # fmt: skip


def _assigned(node: ast.AST) -> list[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store()):
            return [name]
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.alias(name=name, asname=other) if name != "*":
            return [(other or name).partition(".")[0]]
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            return [name]
        case ast.MatchMapping(rest=str(name)):
            return [name]
    return []


class _Reader(ast.NodeVisitor):
    """Walks in order of evaluation; `bound` is what is certainly assigned by then."""

    def __init__(self) -> None:
        self.read: dict[str, None] = {}
        self.bound: set[str] = set()
        self.functions: dict[str, dict[str, None]] = {}

    def block(self, statements: Iterable[ast.stmt]) -> None:
        for statement in statements:
            self.visit(statement)

    def branches(self, *blocks: Iterable[ast.stmt]) -> None:
        """Blocks of which one runs, or perhaps none: bound behind them is what all of them bind."""
        before, ends = self.bound, []
        for statements in blocks:
            self.bound = set(before)
            self.block(statements)
            ends.append(self.bound)
        self.bound = set.intersection(*ends)

    def note(self, name: str) -> None:
        if name not in self.bound:
            self.read.setdefault(name)
        todo, seen = [name], {name}
        while todo:
            for free in self.functions.get(todo.pop(), {}):
                if free not in seen:
                    seen.add(free)
                    todo.append(free)
                    if free not in self.bound:
                        self.read.setdefault(free)

    def define(self, name: str, free: Iterable[str]) -> None:
        """A function that looks up `free`; in another branch it may be another function."""
        self.bound.add(name)
        self.functions.setdefault(name, {}).update(dict.fromkeys(free))

    # -- names -----------------------------------------------------------------------------------

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.note(node.id)
        elif isinstance(node.ctx, ast.Store):
            self.bound.add(node.id)
        else:
            self.note(node.id)
            self.bound.discard(node.id)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self.visit(target)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)
            self.visit(node.target)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.note(node.target.id)
            self.bound.add(node.target.id)
        else:
            self.visit(node.target)
        self.visit(node.value)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        self.visit(node.target)

    def visit_alias(self, node: ast.alias) -> None:
        self.bound.add((node.asname or node.name).partition(".")[0])

    # -- scopes ----------------------------------------------------------------------------------

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        arguments = node.args
        for part in (
            *node.decorator_list,
            *arguments.defaults,
            *filter(None, arguments.kw_defaults),
        ):
            self.visit(part)
        self.define(node.name, _free(node))
        if node.decorator_list:  # whoever gets it may call it at once
            self.note(node.name)

    visit_FunctionDef = _function
    visit_AsyncFunctionDef = _function

    def visit_Lambda(self, node: ast.Lambda) -> None:
        for part in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(part)
        for name in _free(node):
            self.note(name)

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
    ) -> None:
        before = set(self.bound)
        for part in node.generators:
            self.visit(part.iter)
            self.visit(part.target)
            for condition in part.ifs:
                self.visit(condition)
        if isinstance(node, ast.DictComp):
            self.visit(node.key)
            self.visit(node.value)
        else:
            self.visit(node.elt)
        self.bound = before

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for part in (*node.decorator_list, *node.bases, *node.keywords):
            self.visit(part)
        before = set(self.bound)
        self.block(node.body)
        methods = [s for s in node.body if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef))]
        self.bound = before
        self.define(node.name, [name for method in methods for name in _free(method)])
        if node.decorator_list:
            self.note(node.name)

    # -- control ---------------------------------------------------------------------------------

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        self.branches(node.body, node.orelse)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        self.visit(node.values[0])
        before = set(self.bound)
        for value in node.values[1:]:
            self.visit(value)
        self.bound = before

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self.visit(node.test)
        self.branches([ast.Expr(node.body)], [ast.Expr(node.orelse)])

    def _loop(self, node: ast.For | ast.AsyncFor) -> None:
        self.visit(node.iter)
        before = set(self.bound)
        self.visit(node.target)
        self.block(node.body)
        self.bound = before
        self.block(node.orelse)

    visit_For = _loop
    visit_AsyncFor = _loop

    def visit_While(self, node: ast.While) -> None:
        self.visit(node.test)
        before = set(self.bound)
        self.block(node.body)
        self.bound = before
        self.block(node.orelse)

    def _try(self, node: Any) -> None:
        before = set(self.bound)
        self.block([*node.body, *node.orelse])
        ends = [self.bound]
        for handler in node.handlers:
            self.bound = set(before)
            if handler.type is not None:
                self.visit(handler.type)
            self.bound |= {handler.name} if handler.name else set()
            self.block(handler.body)
            ends.append(self.bound - ({handler.name} if handler.name else set()))
        self.bound = before  # it runs after an error, too
        self.block(node.finalbody)
        self.bound |= set.intersection(*ends)

    visit_Try = visit_TryStar = _try

    def visit_Match(self, node: ast.Match) -> None:
        self.visit(node.subject)
        before = set(self.bound)
        for case in node.cases:
            self.bound = set(before)
            self.visit(case.pattern)
            for part in ast.walk(case.pattern):
                name = getattr(part, "name", None) or getattr(part, "rest", None)
                self.bound |= {name} if name else set()
            if case.guard is not None:
                self.visit(case.guard)
            self.block(case.body)
        self.bound = before

    # -- what other magics are given ---------------------------------------------------------------

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        match node.func:
            case ast.Attribute(value=ast.Call(func=ast.Name(id="get_ipython"))):
                for argument in node.args:
                    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                        for word in _WORD.findall(argument.value):
                            self.note(word)


def _all_names(tree: ast.AST) -> tuple[str, ...]:
    return tuple(dict.fromkeys(n.id for n in ast.walk(tree) if isinstance(n, ast.Name)))


def _free(node: ast.AST) -> tuple[str, ...]:
    """The global names that a function's code looks up, as the compiler sees it."""
    module = ast.Module(
        [node if isinstance(node, ast.stmt) else ast.Expr(node)],  # type: ignore[arg-type]
        [],
    )
    try:
        table = symtable.symtable(ast.unparse(module), "<cell>", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # not every tree has a text
        return _all_names(node)
    found: dict[str, None] = {}

    def collect(scope: symtable.SymbolTable) -> None:
        for symbol in scope.get_symbols():
            if symbol.is_global() and (symbol.is_referenced() or symbol.is_declared_global()):
                found.setdefault(symbol.get_name())
        for child in scope.get_children():
            collect(child)

    for child in table.get_children():
        collect(child)
    found.pop("__class__", None)  # what super() needs of the class around a method
    return tuple(found)
