"""The command line: exit codes, words, files; ``nbseed demo`` in real kernels."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import nbformat
import psutil
import pytest

import nbseed
from nbseed.cli import demo, main
from nbseed.cli.demo import Trained

LESSON = "02_same_code_other_losses"
POSIX = pytest.mark.skipif(os.name != "posix", reason="signals and modes of POSIX")


@pytest.fixture
def cwd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


# -- words and exit codes ------------------------------------------------------------------------


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"nbseed {nbseed.__version__}\n"


def test_python_dash_m_is_the_same_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "nbseed", "--version"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, f"nbseed {nbseed.__version__}\n", "")


@pytest.mark.parametrize("argv", [["--help"], ["demo", "--help"]])
def test_help_is_no_failure(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 0
    assert capsys.readouterr().out.startswith("usage: nbseed")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([], "nbseed: the following arguments are required: COMMAND"),
        (["demo", "extra"], "nbseed: unrecognized arguments: extra"),
        (["demo", "--lba"], "nbseed: unrecognized arguments: --lba"),
        (["demo", "--out"], "nbseed demo: argument --out: expected one argument"),
    ],
)
def test_wrong_arguments_are_one_line_and_exit_2(
    argv: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 2
    out, err = capsys.readouterr()
    program = said.partition(":")[0]
    assert (out, err) == ("", f"{said}; {program} --help shows the options\n")


def test_a_command_that_does_not_exist_is_answered_with_those_that_do(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["dmeo"]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "invalid choice: 'dmeo'" in err
    assert "demo" in err.partition("choose from")[2]


def test_a_file_in_the_place_of_the_folder_is_said_before_any_work(
    cwd: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("taken").write_text("mine")
    assert main(["demo", "--out", "taken"]) == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", "nbseed demo: cannot write to taken: it is not a folder\n")
    assert Path("taken").read_text() == "mine"


def test_a_folder_below_a_file_is_said_before_any_work(
    cwd: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("taken").write_text("mine")
    folder = Path("taken", "out")
    assert main(["demo", "--out", str(folder)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"nbseed demo: cannot write to {folder}: ")
    assert err.count("\n") == 1


def test_an_installation_without_the_tutorial_says_so(
    cwd: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(nbseed, "__file__", str(cwd / "nbseed" / "__init__.py"))
    assert main(["demo"]) == 2
    said = f"nbseed demo: this installation lacks the tutorial, notebooks/{LESSON}.ipynb\n"
    assert capsys.readouterr() == ("", said)
    assert list(cwd.iterdir()) == []


def test_a_fault_is_one_line_and_never_the_exit_code_that_says_no(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def tutorial() -> Path:
        raise ValueError("no template\n\tin these paths")

    monkeypatch.setattr(demo, "tutorial", tutorial)
    assert main(["demo"]) == 2
    said = "nbseed demo: ValueError: no template in these paths\n"
    assert capsys.readouterr() == ("", said)


def test_a_tutorial_inside_the_package_comes_first(
    cwd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = cwd / "nbseed" / "notebooks" / demo.TUTORIAL
    beside = cwd / "notebooks" / demo.TUTORIAL
    for path in (inside, beside):
        path.parent.mkdir(parents=True)
        path.touch()
    monkeypatch.setattr(nbseed, "__file__", str(cwd / "nbseed" / "__init__.py"))
    assert demo.tutorial() == inside
    inside.unlink()
    assert demo.tutorial() == beside


# -- JupyterLab ------------------------------------------------------------------------------------


def test_lab_that_is_not_installed_comes_with_the_command_to_install_it(
    cwd: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(["demo", "--lab"]) == 2
    said = 'nbseed demo: JupyterLab is not installed: pip install "nbseed[lab]"\n'
    assert capsys.readouterr() == ("", said)
    assert list(cwd.iterdir()) == []


@pytest.mark.parametrize(("lab_code", "code"), [(0, 0), (1, 2)])
def test_lab_opens_a_copy_and_keeps_an_earlier_one(
    lab_code: int,
    code: int,
    cwd: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    lab = cwd / "modules" / "jupyterlab"
    lab.mkdir(parents=True)
    (lab / "__init__.py").touch()
    (lab / "__main__.py").write_text(f"import sys\nprint(sys.argv[1:])\nsys.exit({lab_code})\n")
    monkeypatch.setenv("PYTHONPATH", str(lab.parent))
    monkeypatch.syspath_prepend(lab.parent)
    copy = Path("lesson", demo.TUTORIAL)

    assert main(["demo", "--lab", "--out", "lesson"]) == code
    said = f"JupyterLab on {copy}; Ctrl-C ends it\n{[str(copy)]}\n"
    assert capfd.readouterr() == (said, "")
    assert copy.read_bytes() == demo.tutorial().read_bytes()

    copy.write_text("edited")
    assert main(["demo", "--lab", "--out", "lesson"]) == code
    assert copy.read_text() == "edited"


# -- the verdict -----------------------------------------------------------------------------------


def trained(mark: str, shift: float = 0.0, steps: int = 1000) -> Trained:
    return Trained(mark * 32, mark * 32, tuple(1000.0 - t + shift for t in range(steps)))


ONE, OTHER = trained("a"), trained("b", shift=0.5)
LATE = Trained(ONE.start, ONE.end, (*ONE.losses[:-1], 1.0000000000000002))
MOVED = Trained(ONE.start, "c" * 32, ONE.losses)
SHORT = trained("a", steps=150)


@pytest.mark.parametrize(
    ("unseeded", "seeded", "code", "said"),
    [
        (
            (ONE, OTHER),
            (ONE, ONE),
            0,
            (
                "Unseeded, the second run gave other losses. Seeded, it was bit-identical in all "
                "1000 steps: as it should be."
            ),
        ),
        (
            (ONE, ONE),
            (ONE, ONE),
            1,
            (
                "Unseeded, the second run gave the same losses. Seeded, it was bit-identical "
                "in all 1000 steps: NOT as it should be."
            ),
        ),
        (
            (ONE, OTHER),
            (ONE, LATE),
            1,
            (
                "Unseeded, the second run gave other losses. Seeded, it was not bit-identical: NOT "
                "as it should be."
            ),
        ),
    ],
)
def test_the_exit_code_and_its_sentence(
    unseeded: tuple[Trained, Trained], seeded: tuple[Trained, Trained], code: int, said: str
) -> None:
    assert demo.exit_code(unseeded, seeded) == code
    assert demo.verdict(unseeded, seeded) == said


@pytest.mark.parametrize("second", [OTHER, LATE, MOVED, SHORT])
def test_runs_that_differ_in_the_last_bit_the_end_or_the_length_are_not_the_same(
    second: Trained,
) -> None:
    assert demo.same((ONE, ONE))
    assert not demo.same((ONE, second))
    assert demo.exit_code((ONE, OTHER), (ONE, second)) == 1


def test_zero_and_minus_zero_are_not_the_same_bits() -> None:
    assert not demo.same((Trained("a", "a", (0.0,)), Trained("a", "a", (-0.0,))))


def test_the_table_is_aligned_text() -> None:
    assert demo.verdict_table((ONE, OTHER), (SHORT, ONE)) == (
        "          unseeded 1  unseeded 2           seed 3, 1  seed 3, 2\n"
        "start     aaaaaaaa    bbbbbbbb    differs  aaaaaaaa   aaaaaaaa   same\n"
        "step 99   901         901.5       differs  901        901        same\n"
        "step 199  801         801.5       differs  -          801        differs\n"
        "step 299  701         701.5       differs  -          701        differs\n"
        "step 399  601         601.5       differs  -          601        differs\n"
        "step 499  501         501.5       differs  -          501        differs\n"
        "step 599  401         401.5       differs  -          401        differs\n"
        "step 699  301         301.5       differs  -          301        differs\n"
        "step 799  201         201.5       differs  -          201        differs\n"
        "step 899  101         101.5       differs  -          101        differs\n"
        "step 999  1           1.5         differs  -          1          differs\n"
        "end       aaaaaaaa    bbbbbbbb    differs  aaaaaaaa   aaaaaaaa   same\n"
        "all                               differs                        differs"
    )


# -- in real kernels -------------------------------------------------------------------------------


class Demo:
    """One real ``nbseed demo`` in a folder of its own, with an empty home and temporary folder."""

    def __init__(self, root: Path) -> None:
        self.work, self.home, self.temporary = root / "work", root / "home", root / "tmp"
        for folder in (self.work, self.home, self.temporary):
            folder.mkdir()
        done = subprocess.run(
            [sys.executable, "-m", "nbseed", "demo"],
            cwd=self.work,
            env=environment(self.home, self.temporary),
            capture_output=True,
            text=True,
            check=False,
        )
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr


def environment(home: Path, temporary: Path) -> dict[str, str]:
    own = ("JUPYTER", "IPYTHON", "XDG_", "MPL", "PYTHONPATH")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    root = str(Path(nbseed.__file__).parent.parent)
    places = {"HOME": str(home), "USERPROFILE": str(home), "TMPDIR": str(temporary)}
    return kept | places | {"PYTHONPATH": root, "PYTHONDONTWRITEBYTECODE": "1"}


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    return Demo(tmp_path_factory.mktemp("demo"))


@pytest.mark.kernel
def test_the_demo_finds_the_seeded_runs_identical_and_the_unseeded_ones_not(shown: Demo) -> None:
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.splitlines()[-2] == demo.verdict((ONE, OTHER), (ONE, ONE))


@pytest.mark.kernel
def test_the_demo_shows_its_progress_cell_by_cell(shown: Demo) -> None:
    lines = shown.out.splitlines()
    assert lines[0] == f"{LESSON}.ipynb in a Jupyter kernel of {sys.executable}"
    cells = [c for c in nbformat.read(demo.tutorial(), 4).cells if c.cell_type == "code"]
    for number, (cell, line) in enumerate(zip(cells, lines[1:], strict=False), 1):
        head = cell.source.splitlines()[0]
        what = f"cell {number} of {len(cells)}"
        assert re.fullmatch(re.escape(f"  {what:<16}  {head:<48}") + r"  \d+\.\d s", line), line
    again = lines[len(cells) + 1 :]
    assert again[:2] == ["", "The training cell again, in a fresh kernel"]
    assert [line[2:18].strip() for line in again[2:8]] == [
        "setup",
        "setup",
        "unseeded, run 1",
        "unseeded, run 2",
        "seeded, run 1",
        "seeded, run 2",
    ]


@pytest.mark.kernel
def test_the_demo_prints_a_table_of_losses_and_fingerprints(shown: Demo) -> None:
    lines = shown.out.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("start"))
    rows = [re.split(r"\s{2,}", line) for line in lines[start : start + 13]]
    labels = ["start", *(f"step {step}" for step in range(99, 1000, 100)), "end", "all"]
    assert [row[0] for row in rows] == labels
    assert rows[-1] == ["all", "differs", "same"]
    for _, first, second, apart, third, fourth, alike in rows[:-1]:
        assert (first != second, apart) == (True, "differs")
        assert (third == fourth, alike) == (True, "same")
    assert float(rows[1][4]) == pytest.approx(10.655608177185059, rel=1e-5)
    assert float(rows[10][4]) == pytest.approx(0.2681158781051636, rel=1e-5)
    assert rows[0][4] == fingerprint_of_seed_3()


def fingerprint_of_seed_3() -> str:
    """The snapshot of python, numpy and torch.cpu under seed 3, in a process that has no others."""
    code = "import numpy, torch, nbseed\nnbseed.seed(3)\nprint(nbseed.snapshot().fingerprint[:8])"
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.mark.kernel
def test_the_demo_writes_three_files_and_nothing_else(shown: Demo) -> None:
    files = {"losses.png", f"{LESSON}.ipynb", f"{LESSON}.html"}
    assert {p.name for p in (shown.work / "nbseed-demo").iterdir()} == files
    assert [p.name for p in shown.work.iterdir()] == ["nbseed-demo"]
    assert list(shown.home.rglob("*")) == []
    assert list(shown.temporary.rglob("*")) == []
    places = [str(Path("nbseed-demo", name)) for name in ("losses.png", f"{LESSON}.ipynb")]
    html = str(Path("nbseed-demo", f"{LESSON}.html"))
    assert shown.out.splitlines()[-1] == f"wrote {', '.join([*places, html])}"


@pytest.mark.kernel
def test_the_demo_writes_a_picture_a_run_notebook_and_a_page(shown: Demo) -> None:
    folder = shown.work / "nbseed-demo"
    assert (folder / "losses.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    notebook = nbformat.read(folder / f"{LESSON}.ipynb", 4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert not any(o.output_type == "error" for cell in code for o in cell.outputs)
    page = (folder / f"{LESSON}.html").read_text(encoding="utf-8")
    assert "Same code, other losses" in page
    assert "losses bit-identical (1000 steps)" in page
    assert len(re.findall(r"<img[^>]*data:image/png;base64,", page)) == 2
    assert not re.search(r"<(script|link|img)[^>]*(src|href)=.https?:", page)


def run_with(tutorial: Path, tmp_path: Path, **options: object) -> subprocess.CompletedProcess[str]:
    """``nbseed demo --out out`` on another tutorial."""
    code = (
        "import pathlib, sys\nfrom nbseed.cli import demo, main\n"
        f"demo.tutorial = lambda: pathlib.Path({str(tutorial)!r})\n"
        "sys.exit(main(['demo', '--out', 'out']))"
    )
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


def tutorial_of(tmp_path: Path, *cells: str) -> Path:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    nbformat.write(notebook, tmp_path / "tutorial.ipynb")
    return tmp_path / "tutorial.ipynb"


@pytest.mark.kernel
@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("import os\nos._exit(1)", "a cell failed (import os): the kernel died"),
        ("1 / 0", "a cell failed (1 / 0): ZeroDivisionError: division by zero"),
        ("x = 1", f"no cell of {LESSON}.ipynb has the tag 'setup'"),
    ],
)
def test_what_cannot_be_told_is_one_line_and_exit_2(cell: str, said: str, tmp_path: Path) -> None:
    done = run_with(tutorial_of(tmp_path, cell), tmp_path)
    assert (done.returncode, done.stderr) == (2, f"nbseed demo: {said}\n")
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.kernel
def test_seeded_runs_that_differ_are_exit_1(tmp_path: Path) -> None:
    notebook = nbformat.read(demo.tutorial(), 4)
    cells = [c for c in notebook.cells if {"setup", "training"} & set(c.metadata.get("tags", ()))]
    *setup, training = cells
    training.source = (
        "%%rngcheckpoint train\nmodel = globals().get('model') or build()\ntrain(model)"
    )
    load = nbformat.v4.new_code_cell("%load_ext nbseed")
    notebook.cells = [load, *setup, training]
    nbformat.write(notebook, tmp_path / "tutorial.ipynb")
    done = run_with(tmp_path / "tutorial.ipynb", tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert "Seeded, it was not bit-identical: NOT as it should be." in done.stdout
    assert (tmp_path / "out" / "losses.png").is_file()


@pytest.mark.kernel
@POSIX
def test_ctrl_c_ends_the_kernel_and_exits_130(tmp_path: Path) -> None:
    tutorial_of(tmp_path, "first = 1", "import time\ntime.sleep(200)")
    code = (
        "import pathlib, sys\nfrom nbseed.cli import demo, main\n"
        "demo.tutorial = lambda: pathlib.Path('tutorial.ipynb')\nsys.exit(main(['demo']))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        next(line for line in process.stdout if "cell 1 of 2" in line)
        kernels = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "nbseed demo: interrupted\n")
    assert kernels
    assert psutil.wait_procs(kernels, timeout=30)[1] == []


@pytest.mark.kernel
@POSIX
def test_a_reader_that_leaves_early_is_no_traceback(tmp_path: Path) -> None:
    tutorial = tutorial_of(tmp_path, "import time\ntime.sleep(1)", "2")
    code = (
        "import pathlib, sys\nfrom nbseed.cli import demo, main\n"
        f"demo.tutorial = lambda: pathlib.Path({str(tutorial)!r})\nsys.exit(main(['demo']))"
    )
    command = [sys.executable, "-c", code]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=tmp_path, stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 2


@pytest.mark.kernel
def test_a_python3_kernel_that_points_elsewhere_is_not_asked(tmp_path: Path) -> None:
    spec = tmp_path / "kernels" / "python3"
    spec.mkdir(parents=True)
    (spec / "kernel.json").write_text(
        '{"argv": ["/nowhere/python", "-f", "{connection_file}"], "display_name": "Other", '
        '"language": "python"}'
    )
    cell = f"import sys\nassert sys.executable == {sys.executable!r}"
    done = run_with(
        tutorial_of(tmp_path, cell), tmp_path, env=os.environ | {"JUPYTER_PATH": str(tmp_path)}
    )
    assert done.stderr == f"nbseed demo: no cell of {LESSON}.ipynb has the tag 'setup'\n"


def test_the_shipped_tutorial_has_the_cells_that_the_demo_needs() -> None:
    notebook = nbformat.read(demo.tutorial(), 4)
    tags = [t for cell in notebook.cells for t in cell.metadata.get("tags", ())]
    assert [t for t in tags if t != "nbseed-skip"] == ["setup", "setup", "training"]


def test_the_interpreter_has_the_command() -> None:
    assert shutil.which("nbseed", path=str(Path(sys.executable).parent)) is not None
