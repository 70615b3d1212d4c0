"""What a cell's text gives away: clocks, seeds made of them, sets, folders, memory nobody filled.

Pure: from source text to signs. A sign is no proof; it is named only where two runs differ.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

CLOCK = "the clock"
PROCESS = "the process id"
ADDRESS = "an address in memory"
HASH = "hash() of text or objects"
ENTROPY = "the operating system's entropy"

_SOURCES = {
    CLOCK: (
        "time time_ns perf_counter perf_counter_ns monotonic monotonic_ns process_time now utcnow "
        "process_time_ns thread_time today default_timer strftime getmtime timeit"
    ),
    PROCESS: "getpid getppid get_ident",
    ADDRESS: "id data_ptr",
    HASH: "hash",
    ENTROPY: "urandom getrandom uuid1 uuid4 token_bytes token_hex token_urlsafe randbits randbelow",
}
_SOURCE_OF = {name: kind for kind, names in _SOURCES.items() for name in names.split()}
_BARE = {"id", "hash"}  # these count as built-ins alone: ``row.id()`` is something else
_SEEDERS = {
    "seed", "manual_seed", "manual_seed_all", "default_rng", "RandomState", "SeedSequence",
    "Random", "PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64", "PRNGKey", "key",
    "seed_everything", "set_seed", "set_random_seed", "fix_seed", "seed_all",
}  # fmt: skip
_SEED_KEYWORDS = {"seed", "random_state", "rng", "random_seed", "manual_seed", "entropy"}
_BUDGETS = {
    "time_budget", "timeout", "time_limit", "max_time", "max_seconds", "time_left_for_this_task",
    "max_time_mins", "time_budget_s", "max_runtime_secs", "maxtime",
}  # fmt: skip
_FILLERS = {"empty", "empty_like", "new_empty", "empty_strided", "resize_"}
_LISTINGS = {"listdir", "scandir", "iterdir", "glob", "iglob", "rglob", "walk", "namelist"}
_SETS = {"set", "frozenset"}
# Arithmetic and dressing-up that leaves a measured time a measured time.
_DRESSING = {
    "round", "int", "float", "str", "abs", "format", "max", "min", "timedelta", "isoformat",
    "total_seconds", "fromtimestamp", "timestamp", "strftime", "list", "tuple",
}  # fmt: skip
_MEASURES = re.compile(
    r"(^|_)(time|times|timing|timings|elapsed|duration|durations|secs|seconds|timestamp|date|now|"
    r"t0|t1|t2|tic|toc|t_start|t_end|pbar|bar|progress)(_|$)"
).search
# What is made of entropy is a result, unless its name says that it is a name.
_NAMINGS = re.compile(
    r"(^|_)(id|uid|uuid|guid|name|run|tag|key|token|path|dir|folder|file|filename|suffix)(_|$)"
).search


@dataclass(frozen=True)
class Sign:
    """A place in a cell or a function of the notebook.

    Attributes
    ----------
    line
        In the text it was found in, from 1.
    text
        The expression, at most 60 characters.
    kind
        For seeds: what they are made of. Else "".
    """

    line: int
    text: str
    kind: str = ""


@dataclass(frozen=True)
class Signs:
    """All signs of one text.

    Attributes
    ----------
    seeds
        Seeds made of the clock, the process, an address, a hash.
    clocks
        Loops, and options of calls, that end by the clock.
    unfilled
        Calls that give memory as it is.
    sets, folders
        Orders that hash seeds or file systems decide.
    reseeds
        Calls of ``.seed()`` without an argument.
    by_address
        Sortings by address.
    derived
        Variables, and items of them, that something else goes into than the cell's own data: by
        name, where and what.
    lines
        What goes into the calls of a line, by its number.
    measures
        Variables that hold nothing but measured times and the like.
    timed
        Keys of dictionaries under which a cell keeps measured times.
    """

    seeds: tuple[Sign, ...] = ()
    clocks: tuple[Sign, ...] = ()
    unfilled: tuple[Sign, ...] = ()
    sets: tuple[Sign, ...] = ()
    folders: tuple[Sign, ...] = ()
    reseeds: tuple[Sign, ...] = ()
    by_address: tuple[Sign, ...] = ()
    derived: Mapping[str, Sign] = field(default_factory=dict)
    lines: Mapping[int, str] = field(default_factory=dict)
    measures: frozenset[str] = frozenset()
    timed: frozenset[str] = frozenset()


@functools.lru_cache(maxsize=256)  # a cell is run again and again
def signs(source: str) -> Signs:
    """The signs in a text; none if it is no Python."""
    try:
        tree = ast.parse(source)
        return _Reader(tree).signs()
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Signs()


class _Reader:
    def __init__(self, tree: ast.Module) -> None:
        self.nodes = list(ast.walk(tree))
        self.parents = {
            id(child): node for node in self.nodes for child in ast.iter_child_nodes(node)
        }
        self.kinds: dict[str, str] = {}  # variables made of a source
        self.derived: dict[str, Sign] = {}
        self.sets: set[str] = set()
        self.measures: set[str] = set()
        self.mixed: set[str] = set()  # variables that something else is put into
        self._derive()

    def signs(self) -> Signs:
        return Signs(
            seeds=tuple(self._seeds()),
            clocks=tuple(self._clocks()),
            unfilled=tuple(
                _sign(n)
                for n in self._calls(_FILLERS)
                if isinstance(n.func, ast.Attribute)
                and (n.args or n.keywords)  # ``queue.empty()`` asks
                and not self._is_filled(n)
            ),
            sets=tuple(self._set_orders()),
            folders=tuple(_sign(n) for n in self._calls(_LISTINGS) if not self._is_sorted(n)),
            reseeds=tuple(_sign(n) for n in self._calls({"seed"}) if not n.args and not n.keywords),
            by_address=tuple(self._sorted_by_address()),
            derived=self.derived,
            lines=self._lines(),
            measures=frozenset(self.measures | {n for n in self._stored() if _MEASURES(n)}),
            timed=frozenset(self._timed()),
        )

    # -- what variables are made of --------------------------------------------------------------

    def _derive(self) -> None:
        for _ in range(3):  # a chain of assignments in any order
            for names, value in self._assignments():
                kind = self._kind(value)
                for name in names:
                    if kind:
                        self.kinds.setdefault(name, kind)
                        self.derived.setdefault(name, _sign(value, kind))
                    if self._is_set(value):
                        self.sets.add(name)
                    if self._is_measure(value) and (kind != ENTROPY or _NAMINGS(name)):
                        self.measures.add(name)
        for node in self._calls({"append", "extend"}):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id=name)), args=[value]):
                    if self._is_measure(value):
                        self.measures.add(name)
                    elif kind := self._kind(value):
                        self.derived.setdefault(name, _sign(value, kind))
                        self.mixed.add(name)
                    elif not self._is_constant(value):
                        self.mixed.add(name)
        for _ in range(3):
            for names, value in self._assignments():
                if not self._is_measure(value) and not self._is_constant(value):
                    self.mixed.update(names)
            self.measures -= self.mixed

    def _is_constant(self, value: ast.AST) -> bool:
        """Whether a value is written out, as a start is: ``0.0``, ``[]``, ``float("inf")``."""
        for node in ast.walk(value):
            if isinstance(node, ast.Call) and _last(node.func) not in _DRESSING:
                return False
            if isinstance(node, ast.Name) and not self._is_callee(node):
                return False
        return True

    def _assignments(self) -> Iterator[tuple[list[str], ast.expr]]:
        for node in self.nodes:
            match node:
                case ast.Assign(targets=targets, value=value):
                    yield [n for t in targets for n in _names(t)], value
                case ast.AnnAssign(target=target, value=ast.expr() as value):
                    yield list(_names(target)), value
                case ast.NamedExpr(target=target, value=value):
                    yield list(_names(target)), value
                case ast.AugAssign(target=target, value=value):
                    yield list(_names(target)), value

    def _stored(self) -> Iterator[str]:
        for node in self.nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id

    def _kind(self, value: ast.AST) -> str:
        """What a value is made of, by the first source or variable in it that tells."""
        for node in ast.walk(value):
            if isinstance(node, ast.Call):
                name = _last(node.func)
                if name in _BARE and not isinstance(node.func, ast.Name):
                    continue
                if name in _SOURCE_OF and not (name in ("hash",) and _is_number(node)):
                    return _SOURCE_OF[name]
            elif isinstance(node, ast.Name) and node.id in self.kinds:
                return self.kinds[node.id]
        return ""

    def _is_measure(self, value: ast.AST) -> bool:
        """Whether a value is nothing but sources, measures and constants, dressed up."""
        found = False
        for node in ast.walk(value):
            if isinstance(node, ast.Call):
                name = _last(node.func)
                if name in _SOURCE_OF:
                    found = True
                elif name not in _DRESSING:
                    return False
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                if node.id in self.measures:
                    found = True
                elif not self._is_callee(node):
                    return False
        return found

    def _is_callee(self, node: ast.AST) -> bool:
        """Whether a name stands for a function or module: ``time`` in ``time.time()``."""
        parent = self.parents.get(id(node))
        while isinstance(parent, ast.Attribute):
            node, parent = parent, self.parents.get(id(parent))
        return isinstance(parent, ast.Call) and parent.func is node

    def _is_set(self, value: ast.AST) -> bool:
        match value:
            case ast.Set() | ast.SetComp():
                return True
            case ast.Call(func=ast.Name(id=name)) if name in _SETS:
                return True
            case ast.Name(id=name):
                return name in self.sets
            case ast.BinOp(left=left, op=ast.BitOr() | ast.BitAnd() | ast.Sub()):
                return self._is_set(left)
        return False

    # -- signs -----------------------------------------------------------------------------------

    def _calls(self, names: Iterable[str]) -> Iterator[ast.Call]:
        for node in self.nodes:
            if isinstance(node, ast.Call) and _last(node.func) in names:
                yield node

    def _seeds(self) -> Iterator[Sign]:
        for node in self.nodes:
            if not isinstance(node, ast.Call):
                continue
            values = [k.value for k in node.keywords if k.arg in _SEED_KEYWORDS]
            if _last(node.func) in _SEEDERS:
                values += [*node.args, *(k.value for k in node.keywords)]
            kind = next(filter(None, map(self._kind, values)), "")
            if kind:
                yield _sign(node, kind)

    def _lines(self) -> dict[int, str]:
        found: dict[int, str] = {}
        for node in self.nodes:
            if isinstance(node, ast.Call):
                values = [*node.args, *(k.value for k in node.keywords)]
                kind = next(filter(None, map(self._kind, values)), "")
                if kind:
                    found.setdefault(node.lineno, kind)
        return found

    def _timed(self) -> Iterator[str]:
        """Constant keys whose values are measures: ``d["took"] = ...``, ``{"took": ...}``."""
        for node in self.nodes:
            match node:
                case ast.Assign(
                    targets=[ast.Subscript(slice=ast.Constant(value=str(key)))], value=value
                ):
                    pairs = [(key, value)]
                case ast.Dict(keys=keys, values=values):
                    pairs = [
                        (key.value, value)
                        for key, value in zip(keys, values, strict=True)
                        if isinstance(key, ast.Constant) and isinstance(key.value, str)
                    ]
                case ast.Call(func=ast.Name(id="dict"), keywords=keywords):
                    pairs = [(k.arg, k.value) for k in keywords if k.arg]
                case _:
                    continue
            yield from (key for key, value in pairs if self._is_measure(value))

    def _sorted_by_address(self) -> Iterator[Sign]:
        for node in self._calls({"sorted", "sort", "min", "max"}):
            for keyword in node.keywords:
                match keyword:
                    case ast.keyword(arg="key", value=ast.Name(id="id" | "hash")):
                        yield _sign(node)

    def _clocks(self) -> Iterator[Sign]:
        for node in self.nodes:
            match node:
                case ast.While(test=test) if self._kind(test) == CLOCK:
                    yield _sign(test)
                case ast.If(test=test, body=body) if self._kind(test) == CLOCK and any(
                    isinstance(part, (ast.Break, ast.Return)) for part in body
                ):
                    yield _sign(test)
                case ast.Call(keywords=keywords):
                    for keyword in keywords:
                        is_none = isinstance(keyword.value, ast.Constant) and (
                            keyword.value.value is None
                        )
                        if keyword.arg in _BUDGETS and not is_none:
                            yield Sign(node.lineno, _short(ast.unparse(keyword)))

    def _set_orders(self) -> Iterator[Sign]:
        for node in self.nodes:
            match node:
                case ast.For(iter=value) | ast.comprehension(iter=value) if self._is_set(value):
                    yield _sign(value)
                case ast.Call(
                    func=ast.Name(id="list" | "tuple" | "enumerate" | "zip" | "map" | "iter"),
                    args=args,
                ) if any(map(self._is_set, args)):
                    yield _sign(node)

    def _is_filled(self, node: ast.AST) -> bool:
        """Whether a call that writes in place takes the memory: ``torch.empty(3).normal_()``."""
        match self.parents.get(id(node)):
            case ast.Attribute(attr=name):
                return name.endswith("_")
            case ast.Call(func=func):
                return _last(func).endswith("_")
        return False

    def _is_sorted(self, node: ast.AST) -> bool:
        while id(node) in self.parents:
            node = self.parents[id(node)]
            match node:
                case ast.Call(func=ast.Name(id="sorted" | "len" | "set" | "any" | "all")):
                    return True
                case ast.stmt():
                    return False
        return False


def _names(target: ast.AST) -> Iterator[str]:
    for node in ast.walk(target):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def _last(func: ast.expr) -> str:
    match func:
        case ast.Name(id=name):
            return name
        case ast.Attribute(attr=name):
            return name
    return ""


def _is_number(node: ast.Call) -> bool:
    """Whether a hash is of numbers alone, which is the same in every process."""
    return all(
        isinstance(part, ast.Constant) and isinstance(part.value, (int, float))
        for argument in node.args
        for part in ast.walk(argument)
        if isinstance(part, (ast.Constant, ast.Name, ast.JoinedStr))
    )


def _sign(node: ast.expr, kind: str = "") -> Sign:
    return Sign(node.lineno, _short(ast.unparse(node)), kind)


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else f"{text[:57]}..."
