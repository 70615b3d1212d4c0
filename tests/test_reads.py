"""What a cell reads before it assigns it, told from its syntax tree."""

from __future__ import annotations

import ast
import sys
import sysconfig
from pathlib import Path

import pytest

from nbseed.reads import names_read, names_used

READS = [
    # names and assignments
    ("x", "x"),
    ("x = 1", ""),
    ("x = 1\nx", ""),
    ("x = x + 1", "x"),
    ("x = y = z", "z"),
    ("x, (y, *z) = a\nx, y, z", "a"),
    ("x += y", "x y"),
    ("x.a += y", "x y"),
    ("x.a = y", "y x"),
    ("x[i] = y", "y x i"),
    ("x: int = y\nx", "y"),
    ("x: int\nx", "x"),
    ("(x := y) + x", "y"),
    ("print(x, key=y, *a, **b)", "print x a y b"),
    ("b, a, b, c", "b a c"),
    ("x = 1\ndel x\nx", "x"),
    ("del x.a, y[z]", "x y z"),
    ("pass", ""),
    ("", ""),
    ("'x'; 1; ...", ""),
    ("assert a, b", "a b"),
    ("raise a from b", "a b"),
    ("λ = 學", "學"),
    # operators, subscripts, texts
    ("a and (b := c) and b; b", "a c b"),
    ("a < b < c", "a b c"),
    ("not a or -b", "a b"),
    ("a[b:c, d]", "a b c d"),
    ("(yes := 1) if test else no; yes", "test no yes"),
    ("f'{a} {b!r:>{c}} {{d}}'", "a b c"),
    ("{a: b, **c}, {d}, [e, *f]", "a b c d e f"),
    # imports
    ("import a, b.c, d.e as f\na, b, f", ""),
    ("import b.c\nc", "c"),
    ("import d.e as f\nd", "d"),
    ("from a import b, c as d\nb, d, c", "c"),
    ("from a import *\nx", "x"),
    ("from . import b\nb", ""),
    # branches
    ("if a:\n    x = 1\nx", "a x"),
    ("if a:\n    x = 1\nelse:\n    x = 2\nx", "a"),
    ("if a:\n    x = 1\nelif b:\n    x = 2\nelse:\n    x = 3\nx", "a b"),
    ("if a:\n    x = 1\nelif b:\n    x = 2\nx", "a b x"),
    ("if (x := a):\n    x\nx", "a"),
    ("while x:\n    y = 1\n    y\ny", "x y"),
    ("while a:\n    x = 1\nelse:\n    x", "a x"),
    ("for x in a:\n    x\n    y = x\nx, y", "a x y"),
    ("for x.a in b: pass", "b x"),
    ("for x in a: pass\nelse:\n    y = 1\ny", "a"),
    ("async for x in a:\n    x\nx", "a x"),
    ("for _ in a:\n    if b:\n        break\n    c = 1\n    continue", "a b"),
    # with, try
    ("with a as b, b as c:\n    c\nb, c", "a"),
    ("async with a as b:\n    b", "a"),
    ("try:\n    x = a\nexcept E as e:\n    e\nx", "a E x"),
    ("try:\n    x = 1\nexcept E:\n    x = 2\nx", "E"),
    ("try:\n    x = 1\nexcept E:\n    x = 2\nelse:\n    y = x\ny", "E y"),
    ("try:\n    x = 1\nfinally:\n    y = 2\nx, y", ""),
    ("try:\n    x = 1\nfinally:\n    x\nx", "x"),
    ("try:\n    pass\nexcept E as e:\n    pass\ne", "E e"),
    ("try:\n    pass\nexcept:\n    a\nelse:\n    b\nfinally:\n    c", "b a c"),
    # match
    ("match a:\n    case B.c:\n        d", "a B d"),
    ("match a:\n    case B(c, d=e):\n        c, d, e", "a B d"),
    ("match a:\n    case [x, *y]:\n        x, y\nx", "a x"),
    ("match a:\n    case {'k': x, **y} if x > z:\n        y\n    case x:\n        x, y", "a z y"),
    ("match a:\n    case 1 | 2 as x:\n        x\n    case _:\n        y = 1\ny", "a y"),
    # comprehensions
    ("[x for x in a]\nx", "a x"),
    ("[x + y for x in a if x > z]", "a z y"),
    ("{x: y for x, y in a}", "a"),
    ("{x for a in b for x in a}", "b"),
    ("(x for x in x)", "x"),
    ("[y := x for x in a]\ny", "a y"),
    ("[x async for x in a]", "a"),
    ("[lambda: x for x in a]", "a"),
    # lambdas and functions
    ("lambda x, y=a, *b, z=c, **d: x + e", "a c e"),
    ("f = lambda: x\nx = 1", "x"),
    ("def f(x): return x + y", ""),
    ("def f(x): return x + y\nf(1)", "y"),
    ("def f(x): return x + y\ny = 1\nf(1)", ""),
    ("def f(x=a, *, y=b): pass", "a b"),
    ("def f(x: A) -> B: pass\nf", ""),
    ("x: List[int] = []", ""),
    ("@a\ndef f(): return x", "a x"),
    ("@a(b)\n@c\nclass D: pass", "a b c"),
    ("async def f(): await g(x)\nawait f()", "g x"),
    ("def f(): yield x\nlist(f())", "list x"),
    ("def f():\n    def g(): return x\n    x = y\n    return g\nf", "y"),
    ("def f():\n    import a\n    return a.b\nf", ""),
    ("def f():\n    global n\n    n += 1\nf()", "n"),
    ("def f():\n    global n\n    del n\nf()", "n"),
    ("def f():\n    n = 0\n    def g():\n        nonlocal n\n        n += m\n    g()\nf()", "m"),
    ("def f(): return [x for x in y]\nf", "y"),
    ("def f(): return g()\ndef g(): return x\nf()", "x"),
    ("def f(): return g()\nf()\ndef g(): return x", "g"),
    ("def f(n): return f(n - 1) + x\nf(3)", "x"),
    ("def f(): g(), x\ndef g(): f(), y\nf()", "x y"),
    ("if a:\n    def f(): return x\nelse:\n    def f(): return y\nf()", "a x y"),
    ("def f(): return x\nif a:\n    x = 1\n    f()\nelse:\n    f()", "a x"),
    ("def f(): return x\nfor i in a:\n    x = i\n    f()\nf()", "a x"),
    ("def f(): return x\ng = f\nx = 1", "x"),
    ("global x\nx", "x"),
    # classes
    ("class A(B, metaclass=C): pass\nA", "B C"),
    ("class A:\n    x = y\n    z = x\nx", "y x"),
    ("class A:\n    def f(self): return x", ""),
    ("class A:\n    def f(self): return x\nA()", "x"),
    ("class A:\n    async def f(self): return x\nA()", "x"),
    ("class A:\n    def f(self): return A, x\nx = 1\nA().f()", ""),
    (
        "class A:\n    def f(self): return super().f(x)\nclass B(A): pass",
        "super x",
    ),  # and no __class__
    ("class A:\n    @a\n    def f(self): return x", "a x"),
    # what other magics are given
    ("get_ipython().run_line_magic('run', '-i script.py')", "get_ipython run i script py"),
    ("get_ipython().run_cell_magic('time', '', 'y = f(x)')", "get_ipython time y f x"),
    ("x = 1\nget_ipython().system('echo $x {n1}')", "get_ipython echo n1"),
    ("shell.run_line_magic('run', 'script.py')", "shell"),
]
NEWER = [
    (11, "try:\n    x = 1\nexcept* E as e:\n    e\nx", "E x"),
    (12, "type A = list[B]\nA", "list B"),
    (12, "def f[T](x: T) -> T: return x + y\nf", "y"),
    (12, "class A[T]:\n    def f(self) -> T: return y\nA", "y"),
    (12, "f'{a['b']}{'\\n'.join(c)}'", "a c"),
]


@pytest.mark.parametrize(("code", "names"), READS)
def test_the_names_that_a_cell_reads_in_order(code, names):
    assert names_read(ast.parse(code)) == tuple(names.split())


@pytest.mark.parametrize(
    ("code", "names"),
    [(code, names) for version, code, names in NEWER if sys.version_info >= (3, version)],
)
def test_the_names_that_a_cell_of_a_newer_python_reads(code, names):
    assert names_read(ast.parse(code)) == tuple(names.split())


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("x = y", "y x"),
        ("x += 1", "x"),
        ("for i, (a, *b) in c: d = e", "c e d i a b"),
        ("with a as b: (c := d)", "a d b c"),
        ("[x for x in y]", "y x"),
        ("def f(rng=a): x = 1", "a f x"),
        ("async def f(): pass\nclass A: pass", "f A"),
        ("from a import rng, b as c\nimport d.e, f.g as h", "rng c d h"),
        ("from a import *", ""),
        ("match a:\n    case {'k': b, **c} | [b, *c] | d: pass", "a d c b"),
        ("a.b = c", "c a"),
        ("", ""),
    ],
)
def test_the_names_that_a_cell_uses(code, names):
    used = names_used(ast.parse(code))
    assert sorted(used) == sorted(names.split())
    assert names_used(ast.parse(code)) == used


@pytest.mark.parametrize(("code", "names"), READS)
def test_what_is_read_is_used(code, names):
    assert set(names_read(ast.parse(code))) <= set(names_used(ast.parse(code)))


def test_long_chains_of_functions_end():
    count = 300
    calls = [f"def f{i}(): return f{i + 1}() + f{(i * 7) % count}()" for i in range(count)]
    code = "\n".join([*calls, "f0()"])
    assert names_read(ast.parse(code)) == (f"f{count}",)


def test_a_function_whose_code_has_no_text_counts_all_its_names():
    inner = ast.Constant("a\nb\\")
    text = ast.JoinedStr(
        [ast.FormattedValue(ast.JoinedStr([ast.FormattedValue(inner, -1, None)]), -1, None)]
    )
    (function,) = ast.parse("def f(): return y, z").body
    function.body.insert(0, ast.Expr(ast.Name("x\ud800", ast.Load())))
    function.body.insert(0, ast.Expr(text))
    tree = ast.fix_missing_locations(ast.Module([function, ast.parse("f").body[0]], []))
    assert set(names_read(tree)) == {"x\ud800", "y", "z"}


def test_an_expression_of_very_many_terms_counts_all_its_names():
    terms = " + ".join(f"x{i % 3}" for i in range(900))
    assert set(names_read(ast.parse(f"x0 = {terms}"))) == {"x0", "x1", "x2"}


def sources():
    """Python files of the standard library and what is installed, the same ones each time."""
    standard = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    tests = sorted(Path(sysconfig.get_path("stdlib"), "test").glob("test_[a-g]*.py"))
    installed = Path(sysconfig.get_path("purelib"))
    torch = sorted((installed / "torch").glob("*/*.py"))
    return [*standard[::2], *tests[::10], *torch[::6]]


def test_no_python_source_is_too_much():
    read = 0
    for path in sources():
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError, ValueError):
            continue
        names = names_read(tree)
        assert set(names) <= set(names_used(tree))
        read += 1
    assert read > 60
