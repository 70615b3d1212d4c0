"""``nbseed verify`` on real notebooks in real kernels: the verdict, what differs first, and why."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import psutil
import pytest
from html_page import texts_of
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from nbseed.cli import main
from nbseed.report import MIME
from nbseed.verify.execution import Settings, execute, read

pytestmark = pytest.mark.kernel

NUMPY = "import numpy as np"


@pytest.fixture(autouse=True)
def cwd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(*cells: str, name: str = "x.ipynb", tags: dict[int, list[str]] | None = None) -> Path:
    """A notebook; `tags` by the number of the cell, from 1."""
    made = [
        new_code_cell(text, metadata={"tags": (tags or {}).get(number, [])})
        for number, text in enumerate(cells, 1)
    ]
    path = Path(name)
    nbformat.write(new_notebook(cells=made), path)
    return path


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


@pytest.fixture
def verify(capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*arguments: object) -> Answer:
        code = main(["verify", *map(str, arguments)])
        return Answer(code, *capsys.readouterr())

    return call


# -- reproducible ----------------------------------------------------------------------------------


def test_a_notebook_that_gives_the_same_is_reproducible(verify: Any, cwd: Path) -> None:
    path = write(
        f"{NUMPY}\nnp.random.seed(3)",
        "x = np.random.rand(50)\nprint(x)\nx",
        "import matplotlib.pyplot as plt\nplt.plot(x);",
        "{'b', 'a'} == {'a', 'b'}",
    )
    before = path.read_bytes()
    found = verify(path)
    assert (found.code, found.lines) == (
        0,
        [
            "x.ipynb: reproducible: 4 cells the same in 2 runs",
            "",
            "  1  =  same; moved numpy  import numpy as np",
            "  2  =  same; moved numpy  x = np.random.rand(50)",
            "  3  =  same               import matplotlib.pyplot as plt",
            "  4  =  same               {'b', 'a'} == {'a', 'b'}",
        ],
    )
    assert found.err == "x.ipynb: run 1 of 2\nx.ipynb: run 2 of 2\n"
    assert path.read_bytes() == before
    assert list(cwd.iterdir()) == [cwd / path]  # the kernel's own files went elsewhere


def test_a_generator_that_nobody_draws_from_may_stand_anywhere(verify: Any) -> None:
    path = write(
        f"{NUMPY}\nimport random\nrng = np.random.default_rng(3)",
        "rng.random()",
    )
    assert verify(path).code == 0


def test_torch_losses_are_compared(verify: Any) -> None:
    cell = (
        "model = torch.nn.Linear(3, 1)\nfor step in range(5):\n"
        "    loss = model(torch.randn(4, 3)).pow(2).mean() * {}\n    loss.backward()"
    )
    path = write("import torch\ntorch.manual_seed(3)", cell.format("1"))
    found = verify(path)
    assert (found.code, found.lines[0]) == (
        0, "x.ipynb: reproducible: 2 cells the same in 2 runs",
    )  # fmt: skip
    path = write("import torch, os\ntorch.manual_seed(3)", cell.format("(1 + os.getpid())"))
    found = verify(path)
    assert found.code == 1
    assert re.search(r"  losses part at step 0 \([\d.e+]+, then [\d.e+]+\)", found.out)
    assert "  why: the process id goes into loss (line 3)" in found.lines


def test_more_runs_are_all_compared(verify: Any, cwd: Path) -> None:
    path = write(
        "from pathlib import Path\nmark = Path('mark')\nwith mark.open('a') as file:\n"
        "    file.write('x')\nprint(len(mark.read_text()) > 2)"
    )
    assert verify(path).code == 0
    (cwd / "mark").unlink()
    found = verify(path, "--runs", 3)
    assert found.code == 1
    assert "  run 3: printed text, line 1: 'False', then 'True'" in found.lines


# -- not reproducible ------------------------------------------------------------------------------


def test_unseeded_draws_are_told_once_at_the_first_cell_that_draws(verify: Any) -> None:
    path = write(NUMPY, "1 + 1", "x = np.random.rand()\nx", "print(x)", "np.random.rand()")
    found = verify(path)
    assert found.code == 1
    assert found.lines[0] == (
        "x.ipynb: NOT reproducible: cell 3 (x = np.random.rand()) is the first to differ in 2 runs"
    )
    assert found.lines[2:4] == [
        "cell 3 (x = np.random.rand()):",
        "  draws from numpy, which stood in another state",
    ]
    assert re.fullmatch(r"  text/plain, line 1: '0\.\d+', then '0\.\d+'", found.lines[4])
    assert found.lines[5:8] == [
        "  why: no cell has seeded numpy before cell 3 draws from it",
        "       a new process begins with a state of its own",
        "       do: `%load_ext nbseed` and `%seed 3`, or `numpy.random.seed(3)`, in the first cell",
    ]
    assert found.lines[9:] == [
        "  1  =  same                       import numpy as np",
        "  2  =  same                       1 + 1",
        "  3  ≠  differs                    x = np.random.rand()",
        "  4  ↳  differs after those above  print(x)",
        "  5  ↳  differs after those above  np.random.rand()",
    ]


def test_a_seed_from_outside_shows_that_a_seed_is_all_that_it_lacks(verify: Any) -> None:
    path = write(NUMPY, "np.random.rand()", "import random\nrandom.random()")
    assert verify(path).code == 1
    found = verify(path, "--seed", 3)
    assert (found.code, found.lines[0]) == (
        0, "x.ipynb: reproducible under seed 3: 3 cells the same in 2 runs",
    )  # fmt: skip


def test_a_generator_without_a_seed_is_named_at_its_line(verify: Any) -> None:
    path = write(f"{NUMPY}\n\nrng = np.random.default_rng()", "rng.random()")
    found = verify(path)
    assert found.code == 1
    assert "  user:rng ends in another state" in found.lines
    assert "  why: np.random.default_rng() without a seed (line 3)" in found.lines
    assert "  2  ↳  differs after those above  rng.random()" in found.lines


def test_the_order_of_a_set_is_named_and_the_kernel_of_nbseed_fixes_it(
    verify: Any, cwd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ", ".join(repr(f"name{number}") for number in range(8))
    path = write(f"print(list({{{names}}}))")
    found = verify(path)
    assert found.code == 1
    assert re.search(r"  why: .* takes an order that nothing fixes \(line 1\)\n", found.out)
    monkeypatch.setenv("JUPYTER_PATH", str(cwd / "share" / "jupyter"))
    main(["kernel", "install", "--prefix", str(cwd)])
    assert verify(path, "--kernel", "nbseed").code == 0


@pytest.mark.parametrize(
    ("cell", "why"),
    [
        ("print(hash('x'))", "perhaps hash() of text is another in each process"),
        ("import time\nprint(time.time())", "perhaps the clock"),
    ],
)
def test_what_is_another_in_each_process_is_named(cell: str, why: str, verify: Any) -> None:
    found = verify(write(cell))
    assert found.code == 1
    assert f"  why: {why}" in found.lines


def test_times_addresses_and_progress_bars_are_set_aside_and_said(verify: Any) -> None:
    path = write(
        "import time\nbegan = time.perf_counter()\nprint(object())\n"
        "print(f'took {time.perf_counter() - began:.9f} s')",
        "%time sum(range(1000))",
    )
    found = verify(path)
    assert found.code == 0
    assert found.lines[-3:] == [
        "  note: cell 1: set aside: addresses",
        "  note: cell 1: set aside: durations",
        "  note: cell 2: set aside: timings of %time and %timeit",
    ]


def test_pictures_are_compared_and_shown_beside_each_other(verify: Any, cwd: Path) -> None:
    path = write(
        "import matplotlib.pyplot as plt, os\nplt.figure(figsize=(2, 1))\n"
        "plt.text(0, 0, f'<b>{os.getpid()}');plt.axis('off');"
    )
    found = verify(path, "--html", "report.html")
    assert found.code == 1
    assert re.search(r"  picture: [\d,]+ of [\d,]+ pixels differ", found.out)
    page = (cwd / "report.html").read_text()
    assert page.count('src="data:image/png;base64,') == 2
    assert "<b>{os" not in page
    assert "plt.text(0, 0, f'<b>{os.getpid()}');" in "".join(texts_of(page))


# -- left out --------------------------------------------------------------------------------------


def test_cells_are_left_out_by_comment_and_by_tag(verify: Any) -> None:
    path = write(
        "# nbseed: skip\nimport os, time\nprint(os.getpid())",
        "print(os.getpid())",
        "1 / 0",
        "",
        "print('the end')",
        tags={2: ["nbseed-skip"], 3: ["skip-execution"]},
    )
    found = verify(path)
    assert (found.code, found.lines[2:]) == (
        0,
        [
            "  1  ·  left out (# nbseed: skip)               # nbseed: skip",
            "  2  ·  left out (tag nbseed-skip)              print(os.getpid())",
            "  3  ·  left out (tag skip-execution: not run)  1 / 0",
            "  4  ·  left out (empty)",
            "  5  =  same                                    print('the end')",
        ],
    )
    assert found.lines[0] == "x.ipynb: reproducible: 1 cell the same in 2 runs"


def test_a_cell_that_may_raise_is_compared_by_its_error(verify: Any) -> None:
    path = write("1 / 0", "import os\nraise ValueError(os.getpid())",
                 tags={1: ["raises-exception"], 2: ["raises-exception"]})  # fmt: skip
    found = verify(path)
    assert found.code == 1
    assert re.search(r"  error, line 1: 'ValueError: \d+', then 'ValueError: \d+'", found.out)
    assert "  1  =  same     1 / 0" in found.lines


def test_widgets_are_said_not_to_be_compared(verify: Any) -> None:
    found = verify(write("import ipywidgets\nipywidgets.IntSlider()"))
    assert (found.code, found.lines[-1]) == (0, "  note: cell 1: not compared: widgets")


# -- the notebook under observation ----------------------------------------------------------------


def test_nothing_of_it_is_seen_by_the_notebook() -> None:
    path = write(
        "before = set(globals())",
        "print(get_ipython().execution_count, len(In), sorted(Out))",
        "3 + 4",
        "print(_, sorted(n for n in set(globals()) - before if n.strip('_i0123456789')))",
        "import sys\nprint([n for n in ('numpy', 'torch', 'matplotlib') if n in sys.modules])",
        "import random\nrandom.seed(3)\nprint(random.random())",
    )
    wanted = [cell.outputs for cell in saved(path).cells]
    found = execute(path, read(path), Settings())
    assert [list(executed.outputs) for executed in found] == wanted
    assert all(executed.run is not None for executed in found)
    assert wanted[4][0]["text"] == "[]\n"


def test_cells_come_with_their_identity_as_from_a_front_end(verify: Any) -> None:
    path = write("%load_ext nbseed\n%seed 3 --each-cell", "%%rngcheckpoint\nimport random\n"
                 "random.random()")  # fmt: skip
    notebook = nbformat.read(path, 4)
    notebook.cells[1].id = "my-own-id"
    nbformat.write(notebook, path)
    keep = "from nbseed.checkpoints import CHECKPOINTS\nassert list(CHECKPOINTS.cells) == [{!r}]"
    notebook.cells.append(new_code_cell(keep.format("id:my-own-id")))
    nbformat.write(notebook, path)
    assert verify(path).code == 0


def test_a_notebook_without_identities_runs_too(verify: Any, cwd: Path) -> None:
    write("import random\nrandom.seed(3)", "random.random()")
    text = json.loads(Path("x.ipynb").read_text())
    for cell in text["cells"]:
        del cell["id"]
    Path("x.ipynb").write_text(json.dumps({**text, "nbformat_minor": 4}))
    assert verify("x.ipynb").code == 0


def test_checkpointed_cells_and_await_run_as_ever(verify: Any) -> None:
    path = write(
        "%load_ext nbseed\n%seed 3\nimport random, asyncio",
        "%%rngcheckpoint a --track x\nfor _ in range(3):\n    x = random.random()\nx",
        "%%rngcheckpoint a --track x\nfor _ in range(3):\n    x = random.random()\nx",
        "await asyncio.sleep(0)\nrandom.random()",
        "%unload_ext nbseed",
        "random.random()",
    )
    found = verify(path)
    assert found.code == 0
    assert "  2  =  same; moved python  %%rngcheckpoint a --track x" in found.lines


# -- beside the saved notebook ---------------------------------------------------------------------


def saved(path: Path) -> Any:
    """Run it and store the outputs, as an author does."""
    import nbclient

    notebook = nbformat.read(path, 4)
    nbclient.execute(notebook, cwd=str(path.parent), kernel_name="python3")
    nbformat.write(notebook, path)
    return notebook


def report_in(notebook: Any) -> Any:
    """The data of nbseed's own output of the second cell."""
    return next(o.data for o in notebook.cells[1].outputs if MIME in o.data)


CHECKPOINTED = (
    "%load_ext nbseed\n%seed 3\nimport random",
    "%%rngcheckpoint draw\nrandom.random()",
    "%%rngcheckpoint again --runs 2\nrandom.random()",
)


def test_a_notebook_that_goes_as_it_was_saved_is_said_to(verify: Any) -> None:
    path = write(*CHECKPOINTED)
    saved(path)
    found = verify(path)
    assert (found.code, found.lines[0]) == (
        0, "x.ipynb: reproducible: 3 cells the same in 2 runs, as saved",
    )  # fmt: skip


def test_a_cell_that_starts_elsewhere_than_it_was_saved_is_named(verify: Any) -> None:
    path = write(*CHECKPOINTED)
    notebook = saved(path)
    notebook.cells[0].source = notebook.cells[0].source.replace("3", "4")
    nbformat.write(notebook, path)
    found = verify(path)
    assert found.code == 1
    assert found.lines[0] == (
        "x.ipynb: NOT as saved: its 2 runs agree with each other, but cell 2 "
        "(%%rngcheckpoint draw) differs from the saved notebook"
    )
    assert re.fullmatch(
        r"  draw starts elsewhere than in the saved notebook: "
        r"python \(saved [0-9a-f]{8}, now [0-9a-f]{8}\)",
        found.lines[3],
    )
    assert re.search(r"again, run 2 starts elsewhere than in the saved notebook: python", found.out)
    assert "  2  ≠  not as saved" in found.out
    assert verify(path, "--ignore-saved").code == 0


def test_other_versions_than_at_the_time_are_said(verify: Any) -> None:
    path = write(*CHECKPOINTED)
    notebook = saved(path)
    run = report_in(notebook)[MIME]["runs"][0]
    run["switches"]["python"] = "3.1"
    run["starts"]["python"] = "0" * 32
    nbformat.write(notebook, path)
    found = verify(path)
    assert found.code == 1
    assert f"  note: saved with python 3.1, here {sys.version.split()[0]}" in found.lines


@pytest.mark.parametrize(
    "damaged", [None, 3, {"version": 99}, {"version": 1, "runs": [{"name": 3}]}, {"version": 1}]
)
def test_what_is_damaged_in_the_saved_notebook_is_passed_over(damaged: Any, verify: Any) -> None:
    path = write(*CHECKPOINTED[:2])
    notebook = saved(path)
    report_in(notebook)[MIME] = damaged
    nbformat.write(notebook, path)
    found = verify(path)
    assert (found.code, found.lines[0]) == (
        0, "x.ipynb: reproducible: 2 cells the same in 2 runs",
    )  # fmt: skip


# -- could not tell --------------------------------------------------------------------------------


def test_a_cell_that_raises_is_could_not_tell(verify: Any) -> None:
    found = verify(write("x = 1", "raise ValueError('<b>')"))
    assert (found.code, found.lines) == (
        2,
        ["x.ipynb: could not tell: cell 2 (raise ValueError('<b>')) raised ValueError: <b>"],
    )


@pytest.mark.parametrize(
    ("cell", "options", "said"),
    [
        ("import os\nos._exit(1)", [], "cell 1 (import os): the kernel died"),
        (
            "import time\ntime.sleep(60)",
            ["--timeout", 1],
            "cell 1 (import time) took more than 1 s; --timeout gives it longer",
        ),
        (
            "input('?')",
            [],
            "cell 1 (input('?')) raised StdinNotImplementedError: ",
        ),
    ],
    ids=["dies", "hangs", "asks"],
)
def test_a_cell_that_does_not_end_is_could_not_tell(
    cell: str, options: list[Any], said: str, verify: Any
) -> None:
    found = verify(write(cell), *options)
    assert (found.code, len(found.lines)) == (2, 1)
    assert found.lines[0].startswith(f"x.ipynb: could not tell: {said}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot be read: No such file or directory"),
        ("", "is no notebook: Expecting value: line 1 column 1 (char 0)"),
        ('{"cells": [', "is no notebook: Expecting value: line 1 column 12 (char 11)"),
        ("[1]", "is no notebook: its JSON is no object"),
        ("\xff", "is no notebook: "),
        ("{}", "is no notebook: "),
        ('{"nbformat": 9, "nbformat_minor": 0, "metadata": {}, "cells": []}', "is no notebook: "),
        ('{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": 3}', "is no notebook: "),
        ('{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": []}', "has no code cells"),
    ],
)
def test_what_is_no_notebook_is_one_line(text: str | None, said: str, verify: Any) -> None:
    if text is not None:
        Path("x.ipynb").write_bytes(text.encode("latin-1"))
    found = verify("x.ipynb")
    assert found.code == 2
    assert len(found.lines) == 1
    assert found.lines[0].startswith(f"x.ipynb: could not tell: {said}")
    assert found.err == ""  # no kernel was started


def test_a_notebook_of_an_old_format_is_understood(verify: Any) -> None:
    cell = {"cell_type": "code", "input": ["print(3)"], "outputs": [], "language": "python",
            "metadata": {}, "collapsed": False}  # fmt: skip
    old = {"nbformat": 3, "nbformat_minor": 0, "metadata": {"name": ""},
           "worksheets": [{"cells": [cell], "metadata": {}}]}  # fmt: skip
    Path("x.ipynb").write_text(json.dumps(old))
    assert verify("x.ipynb").code == 0


def test_a_kernel_that_does_not_exist_is_named_with_those_that_do(verify: Any) -> None:
    path = write("1")
    notebook = nbformat.read(path, 4)
    notebook.metadata.kernelspec = {"name": "r-4", "display_name": "R"}
    nbformat.write(notebook, path)
    found = verify(path)
    assert found.code == 2
    assert re.fullmatch(
        r"x\.ipynb: could not tell: there is no kernel called 'r-4'; there are: .*python3.*; "
        r"--kernel takes one of them",
        found.lines[0],
    )
    assert verify(path, "--kernel", "python3").code == 0


def spec(folder: Path, name: str, **fields: Any) -> None:
    place = folder / "share" / "jupyter" / "kernels" / name
    place.mkdir(parents=True)
    plain = {"argv": [sys.executable, "-c", "raise SystemExit('no <kernel> here')"],
             "display_name": name, "language": "python"}  # fmt: skip
    (place / "kernel.json").write_text(json.dumps({**plain, **fields}))


def test_kernels_that_cannot_do_it_say_why(
    verify: Any, cwd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTER_PATH", str(cwd / "share" / "jupyter"))
    spec(cwd, "broken")
    spec(cwd, "julia", language="julia")
    spec(cwd, "gone", argv=["/nowhere/python"])
    path = write("1")
    said = {
        "broken": "the kernel broken did not start: no <kernel> here",
        "julia": "the kernel julia is for julia, not for Python",
        "gone": "the kernel gone did not start: ",
    }
    for name, words in said.items():
        found = verify(path, "--kernel", name)
        assert found.code == 2
        assert found.lines[0].startswith(f"x.ipynb: could not tell: {words}")


def test_a_kernel_without_nbseed_says_so(
    verify: Any, cwd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTER_PATH", str(cwd / "share" / "jupyter"))
    code = (
        "import sys\nsys.modules['nbseed'] = None\n"
        "from ipykernel.kernelapp import launch_new_instance\nlaunch_new_instance()"
    )
    spec(cwd, "bare", argv=[sys.executable, "-c", code, "-f", "{connection_file}"])
    found = verify(write("1"), "--kernel", "bare")
    assert found.code == 2
    assert found.lines[0].startswith("x.ipynb: could not tell: the kernel cannot import nbseed (")
    assert found.lines[0].endswith("); install it there")


def test_the_worst_of_all_notebooks_is_the_answer(verify: Any, cwd: Path) -> None:
    good = write("1", name="good.ipynb")
    bad = write("import os\nos.getpid()", name="bad.ipynb")
    assert verify(good, bad).code == 1
    found = verify(bad, "nothing.ipynb", good, "--json", "--html", "all.html")
    assert found.code == 2
    told = json.loads(found.out)
    assert [(n["name"], n["reproducible"]) for n in told["notebooks"]] == [
        ("bad.ipynb", False), ("good.ipynb", True), ("nothing.ipynb", None),
    ]  # fmt: skip
    assert told["version"] == 1
    first = told["notebooks"][0]["cells"][0]
    assert (first["number"], first["kind"], first["first_line"]) == (1, "differs", "import os")
    assert first["causes"][0]["said"] == "perhaps the number of the process"
    texts = texts_of((cwd / "all.html").read_text())
    assert any("1 of 3 notebooks reproducible, 1 could not be told" in text for text in texts)


def test_everything_in_the_report_is_escaped(verify: Any, cwd: Path) -> None:
    evil = "<img src=x onerror=alert(1)>"
    path = write(f"import os\nprint('{evil}', os.getpid())", f"'{evil}'", name=f"{evil[:4]}.ipynb")
    notebook = nbformat.read(path, 4)
    notebook.cells.append(new_markdown_cell(evil))
    nbformat.write(notebook, path)
    assert verify(path, "--html", "report.html").code == 1
    assert "<img src=x" not in (cwd / "report.html").read_text()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "the following arguments are required: NOTEBOOK"),
        (["x", "--runs", "1"], "argument --runs: a number from 2 to 100, got 1"),
        (["x", "--runs", "²"], "argument --runs: a number from 2 to 100, got ²"),
        (["x", "--seed", "-1"], "argument --seed: an integer from 0 to 4294967295, got -1"),
        (["x", "--timeout", "nan"], "argument --timeout: a number of seconds, got nan"),
    ],
)
def test_wrong_options_are_one_line(options: Sequence[str], said: str, verify: Any) -> None:
    found = verify(*options)
    assert (found.code, found.out) == (2, "")
    assert found.err == f"nbseed verify: {said}; nbseed verify --help shows the options\n"


def test_a_report_that_cannot_be_written_is_said_before_any_work(verify: Any) -> None:
    found = verify(write("1"), "--html", "no/where.html")
    assert (found.code, found.out) == (2, "")
    assert (
        found.err == "nbseed verify: no/where.html cannot be written: No such file or directory\n"
    )


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_an_interrupt_ends_the_kernel_too(cwd: Path) -> None:
    write("import time, os\nopen('began', 'w').write(str(os.getpid()))\ntime.sleep(60)")
    child = subprocess.Popen(
        [sys.executable, "-m", "nbseed", "verify", "x.ipynb"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    for _ in range(600):
        if (cwd / "began").exists() and (cwd / "began").read_text():
            break
        time.sleep(0.05)
    number = int((cwd / "began").read_text())
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert (child.returncode, out) == (130, "")
    assert err.splitlines()[-1] == "nbseed verify: interrupted"
    for _ in range(100):
        if not psutil.pid_exists(number):
            break
        time.sleep(0.05)
    assert not psutil.pid_exists(number)
