"""``pytest --nbseed``: a notebook is an item, and the difference is the text of its failure."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"


def write(path: Path, *cells: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(new_notebook(cells=[new_code_cell(text) for text in cells]), path)


def run(folder: Path, *options: str) -> tuple[int, str]:
    """A pytest of its own, far from this project's settings; its exit code and what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", str(folder), "-c",
         "/dev/null", "-v", *options],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def test_without_the_option_no_notebook_is_collected(tmp_path: Path) -> None:
    write(tmp_path / "x.ipynb", "1 / 0")
    code, said = run(tmp_path)
    assert code == pytest.ExitCode.NO_TESTS_COLLECTED
    assert "collected 0 items" in said


def test_without_the_option_nothing_heavy_is_imported(tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text(
        "import sys\ndef test_x():\n"
        "    heavy = {'numpy', 'torch', 'matplotlib', 'nbclient', 'jupyter_client', 'ipywidgets'}\n"
        "    assert not heavy & set(sys.modules)\n"
    )
    code, said = run(tmp_path, "-p", "no:hypothesispytest")
    assert code == 0, said


@pytest.mark.kernel
def test_each_notebook_is_an_item_and_the_difference_is_the_failure(tmp_path: Path) -> None:
    write(tmp_path / "good.ipynb", "import random\nrandom.seed(3)", "random.random()")
    write(tmp_path / "deep" / "bad.ipynb", "import random", "random.random()")
    write(tmp_path / "deep" / "fails.ipynb", "1 / 0")
    write(tmp_path / ".ipynb_checkpoints" / "good-checkpoint.ipynb", "1 / 0")
    (tmp_path / "notes.txt").write_text("no notebook")
    code, said = run(tmp_path, "--nbseed")
    assert code == pytest.ExitCode.TESTS_FAILED
    assert "collected 3 items" in said
    assert "good.ipynb::reproducible PASSED" in said
    assert re.search(r"bad\.ipynb: NOT reproducible: cell 2 \(random\.random\(\)\)", said)
    assert "  why: no cell has seeded python before cell 2 draws from it" in said
    assert "fails.ipynb: could not tell: cell 1 (1 / 0) raised ZeroDivisionError" in said
    assert "Traceback" not in said
    assert "2 failed, 1 passed" in said
    code, said = run(tmp_path, "--nbseed", "--nbseed-seed", "3", "deep/bad.ipynb")
    assert code == 0, said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--nbseed-runs", "1"], "ERROR: --nbseed-runs takes a number from 2 to 100"),
        (["--nbseed-seed=-1"], "ERROR: --nbseed-seed takes an integer from 0 to 4294967295"),
        (["--nbseed-timeout", "0"], "ERROR: --nbseed-timeout takes a number of seconds"),
    ],
)
def test_wrong_options_are_said_before_anything_runs(
    options: list[str], said: str, tmp_path: Path
) -> None:
    write(tmp_path / "x.ipynb", "1")
    code, printed = run(tmp_path, "--nbseed", *options)
    assert code == pytest.ExitCode.USAGE_ERROR
    assert said in printed.splitlines()


@pytest.mark.kernel
def test_the_shipped_notebooks_are_reproducible() -> None:
    code, said = run(
        NOTEBOOKS, "--nbseed", *sorted(path.name for path in NOTEBOOKS.glob("*.ipynb"))
    )
    assert code == 0, said
    assert said.count("::reproducible PASSED") == len(list(NOTEBOOKS.glob("*.ipynb")))
