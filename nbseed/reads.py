"""Which variables a cell reads before it assigns them, from its syntax tree alone."""

from __future__ import annotations

import ast
import builtins
import re
import symtable
from collections.abc import Iterable
from typing import Any

_WORD = re.compile(r"[^\W\d]\w*")


def names_read(tree: ast.Module) -> tuple[str, ...]:
    """The variables that a cell reads, or may read, before it assigns them, in order of reading.

    What only one branch or a loop's body assigns counts as not assigned behind it. The names that a
    function of the cell looks up count where the function is named. Text that is handed to other
    magics (``%run``, ``%%time``) counts word by word.
    """
    reader = _Reader()
    reader.block(tree.body)
    return tuple(name for name in reader.read if not hasattr(builtins, name))


def names_used(tree: ast.Module) -> tuple[str, ...]:
    """Every variable that a cell reads or assigns, in no particular order but a fixed one."""
    found = dict.fromkeys(names_read(tree))
    found.update(
        (node.id, None)
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )
    return tuple(found)


class _Reader(ast.NodeVisitor):
    """Walks in order of evaluation; `bound` is what is certainly assigned by then."""

    def __init__(self) -> None:
        self.read: dict[str, None] = {}
        self.bound: set[str] = set()
        self.functions: dict[str, tuple[str, ...]] = {}

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
        for free in self.functions.pop(name, ()):
            self.note(free)

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
        self.visit(node.value)
        self.visit(node.target)

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
        self.bound.add(node.name)
        self.functions[node.name] = _free(node)
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
        inner = [n for s in node.body if isinstance(s, ast.FunctionDef) for n in _free(s)]
        self.bound = before | {node.name}
        self.functions[node.name] = tuple(name for name in inner if name != node.name)

    # -- control ---------------------------------------------------------------------------------

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        self.branches(node.body, node.orelse)

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
        self.bound = set.intersection(*ends)
        self.block(node.finalbody)

    visit_Try = visit_TryStar = _try

    def visit_Match(self, node: ast.Match) -> None:
        self.visit(node.subject)
        before = set(self.bound)
        for case in node.cases:
            self.bound = set(before)
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


def _free(node: ast.AST) -> tuple[str, ...]:
    """The global names that a function's code looks up, as the compiler sees it."""
    module = ast.Module(
        [node if isinstance(node, ast.stmt) else ast.Expr(node)],  # type: ignore[arg-type]
        [],
    )
    table = symtable.symtable(ast.unparse(module), "<cell>", "exec")
    found: dict[str, None] = {}

    def collect(scope: symtable.SymbolTable) -> None:
        for symbol in scope.get_symbols():
            if symbol.is_global() and symbol.is_referenced():
                found.setdefault(symbol.get_name())
        for child in scope.get_children():
            collect(child)

    for child in table.get_children():
        collect(child)
    return tuple(found)
