"""What stands around a cell: files, folders, environment variables and patterns that it names."""

from __future__ import annotations

import os
import sys
from pathlib import Path, PurePosixPath

import pytest

from nbseed.surroundings import surroundings


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def seen(*constants, names=(), **namespace):
    """What is there beside the working directory."""
    found = surroundings([repr(list(constants))], namespace, names or tuple(namespace))
    del found["working directory"]
    return found


# -- files -----------------------------------------------------------------------------------------


def test_a_file_is_told_by_its_content(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("1,2")
    first = seen("data.csv")
    assert list(first) == ["file data.csv"]
    os.utime(path, (1, 1))
    assert seen("data.csv") == first
    path.write_text("1,3")
    assert seen("data.csv") != first
    path.write_text("1,2")
    assert seen("data.csv") == first
    path.unlink()
    assert seen("data.csv") == {}


def test_a_large_file_is_told_by_its_size_and_time_of_change(tmp_path):
    path = tmp_path / "large.bin"
    path.write_bytes(bytes(1_000_001))
    os.utime(path, ns=(5, 7))
    assert seen("large.bin") == {"file large.bin": "1000001 bytes, 7"}
    path.write_bytes(bytes(1_000_000))
    assert len(seen("large.bin")["file large.bin"]) == 16


@pytest.mark.parametrize("kind", [str, Path, PurePosixPath])
def test_a_path_in_a_variable_is_looked_at(tmp_path, kind):
    (tmp_path / "a.txt").write_text("a")
    found = seen(where=kind(tmp_path / "a.txt"))
    assert list(found) == [f"file {tmp_path / 'a.txt'}"]
    assert surroundings([], {"where": "a.txt"}, []).keys() == {"working directory"}


def test_a_folder_in_a_variable_is_where_names_are_looked_for(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "train.csv").write_text("1")
    found = seen("train.csv", root=Path("data"))
    assert set(found) == {"folder data", "file data/train.csv"}
    (tmp_path / "data" / "train.csv").write_text("2")
    again = seen("train.csv", root=Path("data"))
    assert again["folder data"] == found["folder data"]
    assert again["file data/train.csv"] != found["file data/train.csv"]


def test_a_folder_is_told_by_the_names_in_it(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    first = seen("data")
    (folder / "a").write_text("1")
    second = seen("data")
    assert list(first) == list(second) == ["folder data"]
    assert first != second
    (folder / "a").write_text("2")
    assert seen("data") == second


def test_a_pattern_in_a_folder_is_told_by_what_it_finds(tmp_path):
    (tmp_path / "a.csv").write_text("1")
    first = seen("./*.csv")
    assert list(first) == ["files ./*.csv"]
    (tmp_path / "b.txt").write_text("1")
    assert seen("./*.csv") == first
    (tmp_path / "b.csv").write_text("1")
    assert seen("./*.csv") != first


@pytest.mark.parametrize(
    "text",
    ["", "gone.csv", "what?", "*", "a\nb", "x" * 301, "x" * 300, "a\0b", "~", "https://a.b/c"],
    ids=lambda text: ascii(text[:12]),
)
def test_a_text_that_names_nothing_is_not_told(text):
    assert seen(text) == {}
    assert seen(text, where=text) == {}


def test_at_most_forty_things_are_told(tmp_path):
    names = [f"{number}.txt" for number in range(60)]
    for name in names:
        (tmp_path / name).write_text(name)
    found = surroundings([repr(names)], {}, [])
    assert list(found) == ["working directory", *(f"file {name}" for name in names[:39])]


# -- the working directory and environment variables -----------------------------------------------


def test_another_working_directory_is_another_one(tmp_path, monkeypatch):
    first = surroundings([], {}, [])
    assert surroundings([], {}, []) == first
    (tmp_path / "deeper").mkdir()
    monkeypatch.chdir(tmp_path / "deeper")
    assert surroundings([], {}, []).keys() == first.keys()
    assert surroundings([], {}, []) != first


def test_a_working_directory_that_is_gone_does_no_harm(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert list(surroundings(["'a.csv'"], {}, [])) == ["working directory"]


def test_environment_variables_that_a_cell_names_are_told(monkeypatch):
    monkeypatch.setenv("NBSEED_TEST_A", "1")
    monkeypatch.setenv("NBSEED_TEST_B", "2")
    assert seen("NBSEED_TEST_A") == {"environment variable NBSEED_TEST_A": "1"}
    monkeypatch.setenv("NBSEED_TEST_A", "")
    assert seen("NBSEED_TEST_A") == {"environment variable NBSEED_TEST_A": ""}
    monkeypatch.delenv("NBSEED_TEST_A")
    assert seen("NBSEED_TEST_A") == {}
    assert seen(x="NBSEED_TEST_B") == {}


# -- texts and values that answer nothing ----------------------------------------------------------


def test_texts_of_several_functions_count_once(tmp_path):
    (tmp_path / "a.csv").write_text("1")
    one = "def f():\n    return open('a.csv')"
    assert list(surroundings([one, one, "'a.csv'"], {}, [])) == [
        "working directory",
        "file a.csv",
    ]


@pytest.mark.parametrize(
    "text", ["", "open('a.csv'", "'a.csv'\0", "(" * 500, "-" * 100_000 + "1", "b'a'", "# 'a.csv'"]
)
def test_a_text_that_is_no_python_names_nothing(tmp_path, text):
    (tmp_path / "a.csv").write_text("1")
    assert list(surroundings([text], {}, [])) == ["working directory"]


def test_a_text_with_a_lone_surrogate_names_nothing():
    assert list(surroundings(["'\\ud800'"], {"x": "\ud800"}, ["x"])) == ["working directory"]


@pytest.mark.skipif(sys.platform != "linux", reason="folders have names in UTF-8 elsewhere")
def test_a_working_directory_whose_name_is_no_text_is_told(tmp_path, monkeypatch):
    first = surroundings([], {}, [])
    folder = os.fsencode(tmp_path) + b"/\xff"
    os.mkdir(folder)
    monkeypatch.chdir(os.fsdecode(folder))
    assert list(surroundings([], {}, [])) == ["working directory"]
    assert surroundings([], {}, []) != first


class Odd:
    __hash__ = None

    def __getattribute__(self, name):
        raise ValueError(name)

    def __str__(self):
        raise ValueError("shown")

    def __fspath__(self):
        raise ValueError("asked for its path")


class OddText(str):
    def __str__(self):
        raise ValueError("shown")


@pytest.mark.parametrize(
    "make",
    [
        Odd,
        lambda: OddText("a.csv"),
        lambda: Odd,
        lambda: 3,
        lambda: None,
        lambda: b"a.csv",
        lambda: ["a.csv"],
    ],
)
def test_a_value_that_is_no_path_is_not_asked(tmp_path, make):
    (tmp_path / "a.csv").write_text("1")
    assert seen(where=make()) == {}


def test_a_variable_that_is_gone_is_none():
    assert seen(names=("gone",)) == {}
