"""The house of design.md: imports run one way, edges are kept, and the public door is one list."""

from __future__ import annotations

import ast
import inspect
import sys
from pathlib import Path

import pytest

import nbseed

HOME = Path(nbseed.__file__).parent
MODULES = {
    ".".join(["nbseed", *path.relative_to(HOME).with_suffix("").parts]): path
    for path in sorted(HOME.rglob("*.py"))
    if "notebooks" not in path.relative_to(HOME).parts
}

# From the ground up: a module imports from the floors below its own, and from none above. Modules
# on one floor do not know each other. A package is one room of the house.
FLOORS = (
    "errors imports cells reads patches signs unreached probe twister surroundings fingerprint",
    "files",
    "generators determinism losses draws text snapshot_file",
    "snapshot inputs content carried watch",
    "seeding recording rewinding",
    "run ledger arguments sync",
    "outcome archive",
    "store",
    "checkpoint",
    "checkpoints",
    "why tables completion frames curves actions",
    "answer report overlay",
    "show panel",
    "magics views",
    "extension",
    "__init__",
    "verify",
    "cli",
    "__main__",
)
FLOOR_OF = {name: number for number, floor in enumerate(FLOORS) for name in floor.split()}

# The same inside each room; what is imported for types alone does not count there.
ROOMS = {
    "generators": (
        "protocol",
        "python numpy torch numba tensorflow cupy jax pinned",
        "user",
        "__init__",
    ),
    "watch": ("site", "__init__"),
    "content": (
        "record",
        "attributes compare",
        "plain learning",
        "code arrays",
        "values frames live",
        "reader",
        "__init__",
    ),
    "carried": ("copies", "parts", "modules", "__init__"),
    "why": (
        "cause",
        "unfinished variables seeds entropy arithmetic",
        "code process reach",
        "__init__",
    ),
    "panel": ("__init__", "rows style history", "pages", "widget"),
    "verify": (
        "__init__",
        "kernels inside outputs",
        "execution",
        "compare",
        "notebook pages",
        "plugin",
    ),
    "cli": ("demo kernel verify", "__init__"),
}
LEVEL_OF = {
    house: {name: number for number, floor in enumerate(floors) for name in floor.split()}
    for house, floors in ROOMS.items()
}

# Who may import what is not of the standard library. torch and numpy are imported where they are
# used, and only after the user has imported them.
EDGES = {
    "IPython": {
        "nbseed.__init__", "nbseed.arguments", "nbseed.completion", "nbseed.extension",
        "nbseed.magics", "nbseed.panel.widget", "nbseed.show", "nbseed.verify.inside",
        "nbseed.views",
    },
    "traitlets": {"nbseed.magics"},
    "matplotlib": {"nbseed.overlay"},
    "mpl_toolkits": {"nbseed.overlay"},
    "ipywidgets": {"nbseed.panel.widget"},
    "pandas": {"nbseed.run"},
    "PIL": {"nbseed.verify.outputs"},
    "pytest": {"nbseed.verify.plugin"},
    "safetensors": {"nbseed.snapshot_file"},
    "jupyter_client": {
        "nbseed.cli.demo", "nbseed.cli.kernel", "nbseed.verify.execution", "nbseed.verify.kernels",
    },
    "jupyter_core": {"nbseed.cli.kernel"},
    "nbclient": {"nbseed.cli.demo", "nbseed.verify.execution", "nbseed.verify.kernels"},
    "nbconvert": {"nbseed.cli.demo"},
    "nbformat": {"nbseed.cli.demo", "nbseed.verify.execution"},
}  # fmt: skip
LATE = {"torch", "numpy", "matplotlib", "mpl_toolkits"}
FORBIDDEN = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve"}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__"}


def trees():
    return [(name, ast.parse(path.read_text(encoding="utf-8"))) for name, path in MODULES.items()]


def for_types_only(tree):
    """The nodes under ``if TYPE_CHECKING:``."""
    return {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If)
        and isinstance(block.test, ast.Name)
        and block.test.id == "TYPE_CHECKING"
        for child in block.body
        for node in ast.walk(child)
    }


def imports_of(name, tree):
    """What a module imports, as full names, with the node; those for types too."""
    package = name.split(".")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{module}.{alias.name}"
                known = inner in MODULES or f"{inner}.__init__" in MODULES
                yield (inner if known else module), node


def room(full):
    """``nbseed.generators.torch`` is of room ``generators``, the package of ``__init__``."""
    parts = full.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def wrong_ways(name, tree):
    """The imports of a module that lead up or sideways, or to an unknown room."""
    here, found, types = room(name), [], for_types_only(tree)
    for full, node in imports_of(name, tree):
        if full.split(".")[0] != "nbseed":
            continue
        there = room(full)
        if there == here and here in LEVEL_OF:
            level = LEVEL_OF[here]
            last, own = full.split(".")[2:] or ["__init__"], name.split(".")[2]
            if id(node) not in types and level[last[0]] >= level[own]:
                found.append(full)
        elif there != here and FLOOR_OF[there] >= FLOOR_OF[here]:
            found.append(full)
    return found


@pytest.mark.parametrize("name", MODULES)
def test_every_module_has_its_floor(name):
    assert room(name) in FLOOR_OF
    if len(name.split(".")) > 2:
        assert name.split(".")[2] in LEVEL_OF[room(name)]


def test_every_floor_is_that_of_a_module():
    assert set(FLOOR_OF) == {room(name) for name in MODULES}
    inside = {(room(name), name.split(".")[2]) for name in MODULES if name.count(".") > 1}
    assert {(house, name) for house, level in LEVEL_OF.items() for name in level} == inside


@pytest.mark.parametrize(("name", "tree"), trees(), ids=list(MODULES))
def test_imports_run_one_way(name, tree):
    assert wrong_ways(name, tree) == []


@pytest.mark.parametrize(
    ("name", "code", "wrong"),
    [
        ("nbseed.errors", "from .snapshot import snapshot", ["nbseed.snapshot"]),
        ("nbseed.losses", "def f():\n    from . import seeding", ["nbseed.seeding"]),
        ("nbseed.snapshot", "from .generators import rooms\nfrom . import errors", []),
        ("nbseed.losses", "import nbseed.determinism", ["nbseed.determinism"]),
        ("nbseed.report", "import nbseed", ["nbseed"]),
        ("nbseed.generators.numpy", "from . import user", ["nbseed.generators.user"]),
        ("nbseed.generators.numpy", "from .. import errors\nfrom .protocol import Room", []),
        ("nbseed.generators.user", "from ..seeding import seed", ["nbseed.seeding"]),
        ("nbseed.draws", "from .generators import rooms", ["nbseed.generators"]),
        ("nbseed.why.seeds", "from . import code", ["nbseed.why.code"]),
        ("nbseed.why.seeds", "from ..report import sentence", ["nbseed.report"]),
        ("nbseed.why.__init__", "from . import seeds", []),
        ("nbseed.content.plain", "from .reader import read", ["nbseed.content.reader"]),
        ("nbseed.content.plain", "if TYPE_CHECKING:\n    from .reader import Reader", []),
        (
            "nbseed.run",
            "if TYPE_CHECKING:\n    from .checkpoint import Ended",
            ["nbseed.checkpoint"],
        ),
        ("nbseed.cli.demo", "from ..magics import NBSeed\nimport torch", []),
    ],
)
def test_the_check_of_directions_can_fail(name, code, wrong):
    assert wrong_ways(name, ast.parse(code)) == wrong


@pytest.mark.parametrize(("name", "tree"), trees(), ids=list(MODULES))
def test_libraries_are_met_at_their_edge_and_not_before_they_are_used(name, tree):
    types, at_import = for_types_only(tree), {id(node) for node in tree.body}
    for full, node in imports_of(name, tree):
        library = full.split(".")[0]
        if library == "nbseed" or library in sys.stdlib_module_names or id(node) in types:
            continue
        assert library in EDGES or library in LATE, f"{name} imports {library}"
        if library in EDGES:
            assert name in EDGES[library], f"{name} imports {library}"
        assert library not in LATE or id(node) not in at_import, f"{name} imports {library} early"


@pytest.mark.parametrize(("name", "tree"), trees(), ids=list(MODULES))
def test_nothing_that_is_read_can_run(name, tree):
    imported = {full.split(".")[0] for full, _ in imports_of(name, tree)}
    assert imported & FORBIDDEN == set()
    called = {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert called & FORBIDDEN_CALLS == set()
    allowed = {
        keyword.value.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "allow_pickle" and isinstance(keyword.value, ast.Constant)
    }
    assert allowed <= {False}


@pytest.mark.parametrize(("name", "path"), MODULES.items(), ids=list(MODULES))
def test_no_module_is_longer_than_one_can_read(name, path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 500


@pytest.mark.parametrize(("name", "tree"), trees(), ids=list(MODULES))
def test_every_module_says_what_it_is(name, tree):
    if tree.body:
        said = ast.get_docstring(tree)
        assert said is not None
        assert len(said.splitlines()[0]) <= 97


def test_the_public_names_are_these():
    assert sorted(nbseed.__all__) == [
        "NbseedError",
        "Panel",
        "Run",
        "Snapshot",
        "fingerprints",
        "isolated",
        "overlay",
        "register",
        "restore",
        "runs",
        "seed",
        "seed_worker",
        "snapshot",
        "track",
        "unregister",
    ]
    for name in nbseed.__all__:
        value = getattr(nbseed, name)
        assert callable(value)
        assert value.__module__.startswith("nbseed.")


def public_things():
    """The public names, and what a user meets on the classes among them."""
    for name in nbseed.__all__:
        value = getattr(nbseed, name)
        yield name, value
        if inspect.isclass(value):
            for key, item in vars(value).items():
                item = getattr(item, "fget", None) or getattr(item, "func", None) or item
                if not key.startswith("_") and inspect.isfunction(item):
                    yield f"{name}.{key}", item


THINGS = dict(public_things())


@pytest.mark.parametrize("name", THINGS)
def test_every_public_name_is_documented(name):
    said = inspect.getdoc(THINGS[name])
    assert said is not None
    first = said.splitlines()[0]
    assert first.endswith((".", "?", "``"))
    assert not first.startswith(("Run(", "Snapshot("))


@pytest.mark.parametrize(
    "name", [n for n, value in THINGS.items() if inspect.isfunction(inspect.unwrap(value))]
)
def test_every_parameter_of_a_public_function_has_its_type(name):
    signature = inspect.signature(THINGS[name])
    for parameter in signature.parameters.values():
        if parameter.name != "self":
            assert parameter.annotation is not inspect.Parameter.empty
    assert signature.return_annotation is not inspect.Signature.empty


def test_the_package_is_typed():
    assert (HOME / "py.typed").is_file()
