"""Import hooks: called at the right moment, seen by no one, gone without a trace."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nbseed import imports, seeding


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Writes modules that can be imported; afterwards there are none."""
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)

    def write(name: str, text: str = "x = 1\n") -> None:
        path = tmp_path / f"{name.replace('.', '/')}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        importlib.invalidate_caches()

    yield write
    imports.unwatch()
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_a_module_has_run_to_its_end_when_the_call_comes(make: Callable[..., None]) -> None:
    make("late_one", "x = 1\ny = 2\n")
    told = []
    imports.watch(["late_one"], lambda name: told.append((name, sys.modules[name].y)))
    import late_one

    assert told == [("late_one", 2)]
    assert late_one.x == 1


def test_the_call_comes_before_the_importing_code_goes_on(make: Callable[..., None]) -> None:
    make("late_one")
    make("late_two", "import late_one\nfrom __main__ import told_late\nseen = list(told_late)\n")
    main = sys.modules["__main__"]
    main.told_late = []  # type: ignore[attr-defined]
    try:
        imports.watch(["late_one"], main.told_late.append)  # type: ignore[attr-defined]
        import late_two

        assert late_two.seen == ["late_one"]
    finally:
        del main.told_late  # type: ignore[attr-defined]


def test_the_call_comes_once_and_only_for_what_is_watched(make: Callable[..., None]) -> None:
    make("late_one")
    make("late_two")
    told: list[str] = []
    imports.watch(["late_one"], told.append)
    for _ in range(2):
        importlib.import_module("late_two")
        importlib.import_module("late_one")
    assert told == ["late_one"]


def test_a_package_is_told_after_its_parts_that_it_imports(make: Callable[..., None]) -> None:
    make("late_pack.part", "")
    make("late_pack.__init__", "from . import part\nready = True\n")
    told = []
    imports.watch(["late_pack"], lambda name: told.append(sys.modules[name].ready))
    importlib.import_module("late_pack.part")
    assert told == [True]


def test_an_import_that_fails_is_not_told_and_the_next_one_is(make: Callable[..., None]) -> None:
    make("late_one", "raise OSError('not today')\n")
    told: list[str] = []
    imports.watch(["late_one"], told.append)
    with pytest.raises(OSError, match=r"^not today$"):
        importlib.import_module("late_one")
    assert told == []
    assert "late_one" not in sys.modules
    make("late_one", "x = 1  # long enough to be another file\n")
    importlib.import_module("late_one")
    assert told == ["late_one"]


def test_a_module_that_does_not_exist_is_the_error_that_it_always_was() -> None:
    imports.watch(["late_none"], print)
    try:
        with pytest.raises(ModuleNotFoundError) as caught:
            importlib.import_module("late_none")
        assert str(caught.value) == "No module named 'late_none'"
        assert importlib.util.find_spec("late_none") is None
    finally:
        imports.unwatch()


def test_the_module_is_as_it_would_have_been(make: Callable[..., None]) -> None:
    text = '"""A module."""\ndef f():\n    return 1\n'
    make("late_one", text)
    plain = importlib.import_module("late_one")
    kinds = type(plain.__loader__), type(plain.__spec__.loader)
    del sys.modules["late_one"]
    told: list[str] = []
    imports.watch(["late_one"], told.append)
    watched = importlib.import_module("late_one")
    assert (type(watched.__loader__), type(watched.__spec__.loader)) == kinds
    assert watched.__loader__ is watched.__spec__.loader
    assert watched.__spec__.origin == watched.__file__ == plain.__file__
    assert inspect.getsource(watched) == text
    assert inspect.getsource(watched.f) == "def f():\n    return 1\n"
    assert importlib.reload(watched) is watched  # of no one's concern any more
    assert told == ["late_one"]
    assert type(watched.__spec__.loader) is kinds[1]


def test_the_module_sees_its_own_loader_while_it_runs(make: Callable[..., None]) -> None:
    make("late_one", "kinds = type(__loader__).__name__, type(__spec__.loader).__name__\n")
    imports.watch(["late_one"], lambda name: None)
    assert importlib.import_module("late_one").kinds == ("SourceFileLoader", "SourceFileLoader")


def test_resources_of_a_watched_package_can_be_read(
    make: Callable[..., None], tmp_path: Path
) -> None:
    import importlib.resources

    make("late_pack.__init__", "")
    (tmp_path / "late_pack" / "data.txt").write_text("data")
    imports.watch(["late_pack"], lambda name: None)
    package = importlib.import_module("late_pack")
    assert importlib.resources.files(package).joinpath("data.txt").read_text() == "data"


def test_watching_and_unwatching_leave_the_finders_as_found() -> None:
    seeding.forget()
    before = list(sys.meta_path)
    imports.watch(["late_one"], print)
    imports.watch(["late_two"], print)
    assert len(sys.meta_path) == len(before) + 1
    assert sys.meta_path[1:] == before
    imports.unwatch()
    assert sys.meta_path == before
    imports.unwatch()
    assert sys.meta_path == before


def test_nothing_is_told_after_unwatching(make: Callable[..., None]) -> None:
    make("late_one")
    told: list[str] = []
    imports.watch(["late_one"], told.append)
    imports.unwatch()
    importlib.import_module("late_one")
    assert told == []


def test_a_module_counts_as_imported_once_it_has_run_to_its_end(make: Callable[..., None]) -> None:
    make(
        "late_own",
        "from nbseed.imports import is_imported\nduring = is_imported('late_own')\n",
    )
    assert not imports.is_imported("late_own")
    module = importlib.import_module("late_own")
    assert module.during is False
    assert imports.is_imported("late_own")


def test_in_the_call_the_module_counts_as_imported(make: Callable[..., None]) -> None:
    make("late_one")
    told = []
    imports.watch(["late_one"], lambda name: told.append(imports.is_imported(name)))
    importlib.import_module("late_one")
    assert told == [True]


def test_a_module_put_there_by_hand_counts_as_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "late_hand", sys)
    assert imports.is_imported("late_hand")
    monkeypatch.setitem(sys.modules, "late_hand", None)
    assert not imports.is_imported("late_hand")


def test_a_watched_module_that_is_only_looked_for_shows_its_own_loader_s_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "looked_for.py").write_text("answer = 42\n")
    monkeypatch.syspath_prepend(tmp_path)
    imports.watch(["looked_for"], lambda name: None)
    try:
        spec = importlib.util.find_spec("looked_for")
        assert spec is not None
        assert spec.loader.get_source("looked_for") == "answer = 42\n"
    finally:
        imports.unwatch()
