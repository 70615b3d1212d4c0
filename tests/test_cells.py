"""The rewrite of a cell's text and tree: pure, and invisible but for what it is for."""

from __future__ import annotations

import ast
import asyncio
import copy
import inspect
import sys
import traceback

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from nbseed import cells, losses

CELL_MAGIC = "get_ipython().run_cell_magic("


def transformed(text):
    """A cell after IPython's own transformations, and ours behind them, as in a shell."""
    lines = TransformerManager().transform_cell(text).splitlines(keepends=True)
    return "".join(cells.unfold(lines, transformed))


def call(magic, arguments=""):
    return f"{CELL_MAGIC}{magic!r}, {arguments!r}, '\\n')\n"


# -- unfold ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("%%rngcheckpoint\nx = 1", call("rngcheckpoint") + "x = 1\n"),
        ("%%rngcheckpoint train --runs 3\nx = 1\ny\n", call("rngcheckpoint", "train --runs 3")
            + "x = 1\ny\n"),
        ("%%seed 3\nx = 1", call("seed", "3") + "x = 1\n"),
        ("%%seed 3\n\n  \n\nx = 1", call("seed", "3") + "\n\n\nx = 1\n"),
        ("%%seed 3\nx = 1;", call("seed", "3") + "x = 1;\n"),
        ("%%seed 3\nawait f()", call("seed", "3") + "await f()\n"),
        ("%%seed 3\n%time f()\nx", call("seed", "3") + "get_ipython().run_line_magic('time', "
            "'f()')\nx\n"),
        ("%%seed 3\n%%rngcheckpoint train\n\nx = 1", call("seed", "3")
            + call("rngcheckpoint", "train") + "\nx = 1\n"),
        ("%%rngcheckpoint train\n\n%%seed 3\nx = 1", call("rngcheckpoint", "train")
            + "\n" + call("seed", "3") + "x = 1\n"),
        ("%%rngcheckpoint train\n%%time\nx = 1", call("rngcheckpoint", "train")
            + f"{CELL_MAGIC}'time', '', 'x = 1\\n')\n"),
        ("%%seed 3\nx = 'it\\'s \"\"\" {a} \\\\n'", call("seed", "3")
            + "x = 'it\\'s \"\"\" {a} \\\\n'\n"),
        ("%%seed 3\ns = '''\n%%seed 4\n\n'''\n", call("seed", "3") + "s = '''\n%%seed 4\n\n'''\n"),
        ("%%rngcheckpoint 'größe'\nλ = '學'", call("rngcheckpoint", "'größe'") + "λ = '學'\n"),
        ("%%seed 3\ndef f(:", call("seed", "3") + "def f(:\n"),
        ("%%seed 3\n# nothing\n", call("seed", "3") + "# nothing\n"),
    ],
)  # fmt: skip
def test_our_cell_magics_are_unfolded_and_their_bodies_follow(cell, expected):
    assert transformed(cell) == expected


@pytest.mark.parametrize(
    "cell",
    [
        "",
        "x = 1\n",
        "%%time\nx = 1\n",
        "%%capture out\n%%rngcheckpoint train\nx = 1\n",
        "%%seedling\nx = 1\n",
        "%%seed 3",
        "%%seed 3\n",
        "%%seed 3\n  \n\n",
        "%seed 3\nx = 1\n",
        "x = '%%seed 3'\n",
        f"y = 1\n{CELL_MAGIC}'seed', '3', 'x = 1\\n')\n",
        f"{CELL_MAGIC}'seed', '3', 'x = 1\\n'); y = 2\n",
        f"{CELL_MAGIC}'seed', '3', body)\n",
        f"{CELL_MAGIC}'seed', '3', 'x = 1\\n', more=2)\n",
        f"{CELL_MAGIC}'seed', '3', \n",
        f"{CELL_MAGIC}3, '3', 'x'\n)\n",
    ],
)
def test_all_other_cells_stay_as_they_are(cell):
    folded = cell
    if cell.startswith("%%"):
        magic, _, arguments = cell.splitlines()[0][2:].partition(" ")
        folded = f"{CELL_MAGIC}{magic!r}, {arguments!r}, {cell.partition(chr(10))[2]!r})\n"
    lines = folded.splitlines(keepends=True)
    assert cells.unfold(list(lines), lambda text: pytest.fail("transformed")) == lines


@pytest.mark.parametrize(
    "cell",
    [
        "%%rngcheckpoint train\n\n\nx = 1",
        "%%seed 3\n%%rngcheckpoint train\nx = 1",
        "%%rngcheckpoint\n%%time\nx",
        "%%seed 3\n# nothing",
        "%%seed 3\nx = '''\n\n'''",
    ],
)
def test_the_rewrite_may_run_again_on_its_own_result(cell):
    once = transformed(cell)
    lines = once.splitlines(keepends=True)
    assert "".join(cells.unfold(lines, transformed)) == once
    assert transformed(cell) == once


@pytest.mark.parametrize("blank", [0, 1, 3])
def test_statements_stay_on_their_lines(blank):
    cell = "%%seed 3\n" + "\n" * blank + "x = 1\n\n%%rngcheckpoint\n"
    nested = "%%seed 3\n" + "\n" * blank + "%%rngcheckpoint a\n\nx = 1\ny = 2\n"
    for text in (cell.replace("%%rngcheckpoint", "y = 2"), nested):
        tree = ast.parse(transformed(text))
        where = {n.targets[0].id: n.lineno for n in tree.body if isinstance(n, ast.Assign)}
        lines = text.splitlines()
        assert where == {"x": lines.index("x = 1") + 1, "y": lines.index("y = 2") + 1}


def test_a_body_that_ipython_refuses_stops_the_cell():
    def refuse(text):
        raise SyntaxError(f"no: {text!r}")

    with pytest.raises(SyntaxError) as caught:
        cells.unfold([f"{CELL_MAGIC}'seed', '3', 'x = (\\n')\n"], refuse)
    assert str(caught.value) == r"no: 'x = (\n'"


def test_the_call_of_a_magic_is_told_from_other_statements():
    (node,) = ast.parse(f"{CELL_MAGIC}'seed', '3', 'x')").body
    assert cells.call_of(node) == cells.Call("seed", "3", "x")
    (other,) = ast.parse("shell.run_cell_magic('seed', '3', 'x')").body
    assert cells.call_of(other) is None


@pytest.mark.parametrize(
    ("cell", "arguments"),
    [
        ("%%rngcheckpoint train --runs 2\nx", "train --runs 2"),
        ("%%seed 3\n%%rngcheckpoint a\nx", "a"),
        ("%%rngcheckpoint a\n%%seed 3\nx", "a"),
        ("%%seed 3\nx", None),
        ("x = 1", None),
        ("%%rngcheckpoint a\n", None),
        ("", None),
    ],
)
def test_the_arguments_of_a_checkpointed_tree(cell, arguments):
    assert cells.checkpoint_arguments(ast.parse(transformed(cell))) == arguments


@pytest.mark.parametrize(
    ("cell", "body", "arguments"),
    [
        ("%%rngcheckpoint\nx", "x", ""),
        ("%%rngcheckpoint train --runs 2  \n\nx\n", "\nx\n", "train --runs 2"),
        ("\n\n%%rngcheckpoint a\nx", "x", "a"),
        ("%%time\n%%rngcheckpoint a\nx", "x", "a"),
        ("%%seed 3\n\n%%rngcheckpoint a\n%%time\nx", "%%time\nx", "a"),
        ("  %%rngcheckpoint a\n  x", "  x", "a"),
        ("%%rngcheckpoint a", "", "a"),
        ("%%seed 3\nx", "%%seed 3\nx", None),
        ("x\n%%rngcheckpoint a\ny", "x\n%%rngcheckpoint a\ny", None),
        ("", "", None),
        ("%%rngcheckpoint größe\nλ = 1\n", "λ = 1\n", "größe"),
    ],
)
def test_a_raw_cell_is_taken_apart(cell, body, arguments):
    assert cells.body_of(cell) == body
    assert cells.arguments_of(cell) == arguments


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("get_ipython().run_line_magic('run', '-i script.py')", True),
        ("get_ipython().run_line_magic('run', '-n -i script.py')", True),
        ("get_ipython().run_line_magic('run', '-ti script.py')", True),
        ("if x:\n    get_ipython().run_line_magic('run', '-i script.py')", True),
        ("get_ipython().run_line_magic('run', 'script.py')", False),
        ("get_ipython().run_line_magic('run', 'in-it.py')", False),
        ("get_ipython().run_line_magic('time', '-i')", False),
        ("x = 1", False),
    ],
)
def test_a_script_that_runs_on_the_notebooks_variables_is_seen(code, expected):
    assert cells.runs_a_script(ast.parse(code)) is expected


# -- repeat ----------------------------------------------------------------------------------------


class Shell:
    """What a repeated tree calls."""

    def __init__(self):
        self.calls = []

    def run_cell_magic(self, magic, arguments, body):
        self.calls.append((magic, arguments))

    def displayhook(self, value):
        self.calls.append(("display", value))


def run_repeated(cell, times, display=True):
    """Run it as IPython would: the value of the last expression is displayed by IPython itself."""
    tree = cells.repeat(ast.parse(transformed(cell)), times, display)
    shell, namespace = Shell(), {}
    namespace["get_ipython"] = lambda: shell
    *head, last = tree.body
    exec(compile(ast.Module(head, []), "<cell>", "exec"), namespace)
    if isinstance(last, ast.Expr):
        shell.displayhook(eval(compile(ast.Expression(last.value), "<cell>", "eval"), namespace))
    else:
        exec(compile(ast.Module([last], []), "<cell>", "exec"), namespace)
    return shell.calls, namespace


CHECKPOINT, SEED = ("rngcheckpoint", "a"), ("seed", "3")


@pytest.mark.parametrize(
    ("cell", "times", "calls"),
    [
        ("%%rngcheckpoint a\n7", 3, [CHECKPOINT, ("display", 7)] * 3),
        ("%%rngcheckpoint a\n7", 1, [CHECKPOINT, ("display", 7)]),
        ("%%rngcheckpoint a\nx = 7", 2, [CHECKPOINT] * 2),
        ("%%seed 3\n%%rngcheckpoint a\n7", 2, [SEED, *[CHECKPOINT, ("display", 7)] * 2]),
        ("%%rngcheckpoint a\n%%seed 3\n7", 2, [CHECKPOINT, SEED, ("display", 7)] * 2),
        (
            "%%rngcheckpoint a\ntry:\n    n += 1\nexcept NameError:\n    n = 1\nn",
            3,
            [CHECKPOINT, ("display", 1), CHECKPOINT, ("display", 2), CHECKPOINT, ("display", 3)],
        ),
    ],
)
def test_a_body_runs_several_times_each_behind_the_call_and_each_displays(cell, times, calls):
    assert run_repeated(cell, times)[0] == calls


def test_without_display_only_ipythons_own_is_left():
    calls, _ = run_repeated("%%rngcheckpoint a\n7", 3, display=False)
    assert calls == [CHECKPOINT, CHECKPOINT, CHECKPOINT, ("display", 7)]


@pytest.mark.parametrize(
    "cell",
    ["x = 1", "%%seed 3\nx = 1", "%%rngcheckpoint a\n# nothing", "%%rngcheckpoint a\n%%seed 3\n#"],
)
def test_a_tree_with_nothing_to_repeat_stays_as_it_is(cell):
    tree = ast.parse(transformed(cell))
    before = ast.dump(tree, include_attributes=True)
    again = cells.repeat(tree, 3, True)
    assert again is tree
    assert ast.dump(again, include_attributes=True) == before


def test_the_rounds_share_no_nodes_and_keep_their_lines():
    tree = cells.repeat(ast.parse(transformed("%%rngcheckpoint a\n\nx = [1]\nx")), 3, True)
    nodes = [id(node) for node in ast.walk(tree) if not isinstance(node, ast.expr_context)]
    assert len(nodes) == len(set(nodes))
    assert [node.lineno for node in tree.body] == [1, 3, 4] * 3
    compile(tree, "<cell>", "exec")


# -- track -----------------------------------------------------------------------------------------


def recorded(tree, names, namespace=None):
    """What a run records of an instrumented tree, and the names it leaves."""
    recorder = losses.Recorder(tuple(names))
    losses.begin(recorder)
    space = dict(namespace or {})
    try:
        result = eval(compile(tree, "<cell>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), space)
        if inspect.iscoroutine(result):
            asyncio.run(result)
    finally:
        losses.end(recorder)
    return {name: series.values().tolist() for name, series in recorder.series.items()}, space


ASYNC = """
async def numbers():
    yield 1
    yield 2

class Held:
    def __enter__(self): return 5, 6
    def __exit__(self, *error): return None
    async def __aenter__(self): return 7
    async def __aexit__(self, *error): return None
"""
SNIPPETS = [
    ("x = 1", {"x": [1]}),
    ("x = y = 2", {"x": [2], "y": [2]}),
    ("x, z = 1, 2", {"x": [1]}),
    ("x, (y, *z) = 1, (2, 3, 4)", {"x": [1], "y": [2]}),
    ("[x, y] = 1, 2", {"x": [1], "y": [2]}),
    ("*z, x = 1, 2", {"x": [2]}),
    ("z = [0, 0]\nz[0], x = 1, 2", {"x": [2]}),
    ("x = 1\nx += 2\nx *= 2", {"x": [1, 3, 6]}),
    ("x: int = 3", {"x": [3]}),
    ("x: int", {}),
    ("z = (x := 4) + 1", {"x": [4]}),
    ("z = [x := i for i in range(3)]", {"x": [0, 1, 2]}),
    ("z = [i for i in range(3) if (x := i)]", {"x": [0, 1, 2]}),
    ("z = [x for x in range(3)]", {}),
    ("z = {}\nz[max(x for x in range(3))] = 1", {}),
    ("z = {}\nz[(x := 2)] = 1", {"x": [2]}),
    ("for x in range(3): pass", {"x": [0, 1, 2]}),
    ("for x, y in [(1, 2), (3, 4)]:\n    if x == 1:\n        continue\nelse:\n    z = 1",
        {"x": [1, 3], "y": [2, 4]}),
    ("with Held() as (x, y): pass", {"x": [5], "y": [6]}),
    ("with Held() as z, Held() as (x, _): pass", {"x": [5]}),
    ("async for x in numbers(): pass", {"x": [1, 2]}),
    ("async with Held() as x: pass", {"x": [7]}),
    ("z = 0\nwhile z < 2:\n    z += 1\n    x = z", {"x": [1, 2]}),
    ("if True:\n    x = 1\nelse:\n    x = 2", {"x": [1]}),
    ("try:\n    x = 1\n    1 / 0\nexcept ZeroDivisionError as z:\n    x = 2\nfinally:\n    x = 4",
        {"x": [1, 2, 4]}),
    ("def f(x):\n    def g():\n        nonlocal x\n        x += 1\n    g()\nz = f(1), f(5)",
        {"x": [2, 6]}),
    ("def f():\n    global x\n    x = 1\nf()", {"x": [1]}),
    ("def f():\n    x = yield 1\n    x = yield 2\ng = f()\nnext(g)\nz = g.send(8)", {"x": [8]}),
    ("class A:\n    x = 1\n    y: int = x + 1\n    def f(self):\n        x = 3\nz = A().f()",
        {"x": [1, 3], "y": [2]}),
    ("class A: pass\nA.x = 3\nz = [0]\nz[0] = 1", {}),
    ("class A:\n    __x = 2\n    z = __x", {}),
    ("match [1, 2, 3]:\n    case [x, *_]:\n        y = x + 1", {"x": [1], "y": [2]}),
    ("match {'a': 1, 'b': 2}:\n    case {'a': int() as x, **y}:\n        z = 1",
        {"x": [1], "y": []}),
    ("match 5:\n    case 4:\n        x = 1\n    case x:\n        z = 2", {"x": [5]}),
    ("from math import pi as x", {}),
    ("x = None\nx = 'text'\nx = True\nx = 10 ** 400", {"x": [1]}),
    ("x = [1, 2]\nx += [3]", {"x": []}),
    ("f = lambda n: (x := n)\nz = f(3)", {"x": [3]}),
    ("async def f():\n    x = await g()\n    return x\nasync def g():\n    return 9\nz = await f()",
        {"x": [9]}),
    ("x = 1; y = 2; del x", {"x": [1], "y": [2]}),
    ('"""A docstring."""\nx = __doc__ and 1', {"x": [1]}),
    ("from __future__ import annotations\nx = 1", {"x": [1]}),
]  # fmt: skip


@pytest.mark.parametrize(("code", "expected"), SNIPPETS)
def test_each_assignment_is_recorded_and_the_code_does_what_it_did(code, expected):
    _, known = recorded(ast.parse(ASYNC), ())
    plain, before = recorded(ast.parse(code), (), known)
    found, after = recorded(cells.track(ast.parse(code), ("x", "y")), ("x", "y"), known)
    assert plain == {}
    assert found == expected
    assert list(after) == list(before)
    new = [name for name in after if name not in ("__builtins__", *known)]
    kinds = (int, str, list, dict, tuple, type(None))
    values = [name for name in new if isinstance(before[name], kinds)]
    assert {name: after[name] for name in values} == {name: before[name] for name in values}


@pytest.mark.parametrize(("code", "_"), SNIPPETS)
def test_tracking_keeps_every_line_number(code, _):
    plain, changed = ast.parse(code), cells.track(ast.parse(code), ("x", "y"))
    lines = {node.lineno for node in ast.walk(plain) if hasattr(node, "lineno")}
    assert {node.lineno for node in ast.walk(changed) if hasattr(node, "lineno")} == lines
    assert ast.get_docstring(changed) == ast.get_docstring(plain)


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("\nx = (\n    1 /\n    0\n)", 3),
        ("x = 1\n\nx += 1 / 0", 3),
        ("\n\nfor x in [1]:\n    y = 1\n    1 / 0", 5),
        ("def f():\n    x = 1\n    return x / 0\n\nf()", 3),
        ("x, y = 1, 2\n\nx, y = 1 / 0, 2", 3),
    ],
)
def test_a_traceback_names_the_line_that_the_user_wrote(code, line):
    tree = cells.track(ast.parse(code), ("x", "y"))
    with pytest.raises(ZeroDivisionError) as caught:
        exec(compile(tree, "<cell>", "exec"), {})
    assert traceback.extract_tb(caught.tb)[-1][:2] == ("<cell>", line)


def test_without_names_a_tree_is_not_touched():
    tree = ast.parse("x = 1\nx += 1")
    before = ast.dump(copy.deepcopy(tree), include_attributes=True)
    assert ast.dump(cells.track(tree, ()), include_attributes=True) == before


@pytest.mark.parametrize("code", ["z = 1", "z.x = 1", "z[x] = 1", "def x(): pass", "import x"])
def test_names_that_are_not_assigned_change_nothing(code):
    before = ast.dump(ast.parse(code), include_attributes=True)
    changed = cells.track(ast.parse(code), ("x",))
    assert ast.dump(changed, include_attributes=True) == before


@pytest.mark.parametrize("code", ["x += 1", "x, y = 3, 4", "x: int = 3", "x = 3"])
def test_a_last_assignment_still_displays_nothing(code):
    shown = []
    tree = ast.Interactive(cells.track(ast.parse(code), ("x", "y")).body)
    code = compile(tree, "<cell>", "single")
    hook, sys.displayhook = sys.displayhook, shown.append
    try:
        exec(code, {"x": 1})
    finally:
        sys.displayhook = hook
    assert [value for value in shown if value is not None] == []


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("x = 1\ny += 1\nfor a, b in c: pass", {"x", "y", "a", "b"}),
        ("def f():\n    x = 1", {"x"}),
        ("with a as b: c = (d := 1)", {"b", "c", "d"}),
        ("match a:\n    case {'k': b, **c} | [b, *c]: pass\n    case A(x=d) as e: pass",
            {"b", "c", "d", "e"}),
        ("a.b = 1\na[0] = 2", set()),
    ],
)  # fmt: skip
def test_the_names_that_a_tree_assigns(code, names):
    assert cells.assigned(ast.parse(code)) == names


def test_a_function_of_a_tracking_cell_is_a_plain_one_in_another_cell():
    tree = cells.track(ast.parse("def f():\n    x, y = 'text', [1]\n    return x"), ("x", "y"))
    _, space = recorded(tree, ("x", "y"))
    found, after = recorded(ast.parse("z = f()"), (), space)
    assert (found, after["z"]) == ({}, "text")
    assert space["f"]() == "text"


FUTURE = [
    ("from __future__ import annotations\nx = 1\n", 1),
    ("\n\nfrom __future__ import (\n  annotations,\n)\nx = 1\n", 5),
    ('"""What it is."""\nfrom __future__ import annotations\nx = 1\n', 2),
]


@pytest.mark.parametrize(("body", "line"), FUTURE)
def test_the_call_stands_behind_imports_from_the_future(body, line):
    cell = f"get_ipython().run_cell_magic('rngcheckpoint', 'a', {body!r})\n"
    lines = cells.unfold([cell], lambda text: text.lstrip("\n"))
    assert lines[0] == "\n"
    assert lines[line].endswith("; get_ipython().run_cell_magic('rngcheckpoint', 'a', '\\n')\n")
    tree = ast.parse("".join(lines))
    compile(tree, "<cell>", "exec")
    assert cells.checkpoint_arguments(tree) == "a"
    assert [n.lineno for n in ast.walk(tree) if getattr(n, "id", "") == "x"] == [line + 2]
    assert len(cells.repeat(tree, 3, True).body) == len(tree.body) + 2 * 2
