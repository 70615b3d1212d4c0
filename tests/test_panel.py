"""The panel without a browser: what it shows, what its buttons do, and what it sends."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from html_page import texts_of
from IPython.core.interactiveshell import InteractiveShell
from ipywidgets import HTML, Widget
from shells import Notebook, loaded, started
from standin import Devices

import nbseed
from nbseed.checkpoints import CHECKPOINTS
from nbseed.ledger import LEDGER
from nbseed.panel import widget
from nbseed.panel.widget import Panel

TRAIN = "%%rngcheckpoint train\nx = torch.randn(5, requires_grad=True)\n(x ** 2).sum().backward()"
EVIL = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def shell() -> Iterator[InteractiveShell]:
    with started() as shell:
        yield shell


@pytest.fixture
def notebook(shell: InteractiveShell) -> Iterator[Notebook]:
    with loaded(shell) as notebook:
        notebook.ok("%seed 3\nimport random, torch, nbseed")
        yield notebook


@pytest.fixture
def panel(notebook: Notebook) -> Iterator[Panel]:
    made = nbseed.Panel()
    yield made
    made.close()


@pytest.fixture
def devices(monkeypatch: pytest.MonkeyPatch) -> Devices:
    made = Devices("cuda", 4)
    monkeypatch.setattr(torch, "cuda", made)
    made.init()
    return made


def click(panel: Panel, name: str) -> None:
    """Click a button, as the front end says it."""
    buttons = [w for w in walk(panel) if getattr(w, "description", "") == name]
    assert len(buttons) == 1, name
    if hasattr(buttons[0], "click"):
        buttons[0].click()
    else:
        buttons[0].value = not buttons[0].value


def walk(part: Any) -> Iterator[Any]:
    yield part
    for child in getattr(part, "children", ()):
        yield from walk(child)


def page(panel: Panel) -> str:
    """All HTML that the panel shows."""
    return "".join(part.value for part in walk(panel) if isinstance(part, HTML))


def status(panel: Panel) -> str:
    line = re.search(r'<div role="status".*?</div>', page(panel))
    assert line is not None
    return " ".join(texts_of(line[0]))


def states(panel: Panel) -> list[str]:
    return re.findall(r"<code>([0-9a-f]{8})</code>", page(panel))


def columns(panel: Panel) -> list[str]:
    """The titles of the ribbon's columns, the newest first."""
    return re.findall(r'<div class="c" role="img" aria-label="([^"]*)"', page(panel))


def now() -> list[str]:
    return [mark[:8] for mark in nbseed.fingerprints().values()]


# -- what is shown ---------------------------------------------------------------------------------


def test_it_shows_the_states_of_now_and_follows_each_cell(notebook: Notebook, panel: Panel) -> None:
    assert states(panel) == now()
    assert columns(panel) == []
    first = notebook.shell.execution_count
    notebook.ok("random.random()")
    assert states(panel) == now()
    assert columns(panel) == [f"[{first}]"]
    assert "2 words" in page(panel)


def test_a_cell_that_fails_is_followed_too(notebook: Notebook, panel: Panel) -> None:
    notebook.run("random.random()\n1 / 0")
    assert states(panel) == now()
    assert len(columns(panel)) == 1


def test_runs_are_marked_and_a_rewound_cell_has_its_swatches_again(
    notebook: Notebook, panel: Panel
) -> None:
    for cell in (TRAIN, "random.random()", TRAIN):
        notebook.ok(cell)
    assert [title.partition("] ")[2] for title in columns(panel)] == [
        "train: same as the first run",
        "",
        "train: checkpoint taken",
    ]
    newest, _, oldest = re.findall(r'<div class="c".*?</div>', page(panel))
    swatches = re.compile(r'class="p. ?" style="--h:\d+"|class="p." style="--h:\d+"')
    assert swatches.findall(newest) == swatches.findall(oldest)


def test_a_parted_run_shows_where(notebook: Notebook, panel: Panel) -> None:
    notebook.ok("n = 1")
    cell = "%%rngcheckpoint part\n[random.random() for _ in range(n)]"
    notebook.ok(cell)
    notebook.ok("n = 2")
    notebook.ok(cell)
    newest = re.findall(r'<div class="c".*?</div>', page(panel))[0]
    assert "part: differs from the first run" in newest
    assert re.search(
        r'<i class="p. x"[^>]* title="\[\d+\] part python [0-9a-f]{8}, parted"', newest
    )
    assert newest.count(", parted") == 1


def test_what_is_as_it_was_is_not_sent_again(
    notebook: Notebook, panel: Panel, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook.ok("random.random()")
    sent: list[Any] = []
    monkeypatch.setattr(Widget, "_send", lambda self, message, buffers=None: sent.append(message))
    notebook.ok("y = 1")
    notebook.ok("y = 2")
    assert sent == []
    count = len(columns(panel))
    notebook.ok("random.random()")
    assert sent
    assert len(columns(panel)) == count + 3  # the still cells come along


def test_several_panels_agree_and_a_closed_one_follows_nothing(notebook: Notebook) -> None:
    one, other = nbseed.Panel(), nbseed.Panel()
    notebook.ok("random.random()")
    assert states(one) == states(other) == now()
    one.close()
    notebook.ok("random.random()")
    assert states(other) == now()
    assert one.is_closed
    assert repr(one) == "<closed panel>"
    other.close()
    assert LEDGER.listeners == []


def test_nothing_is_left_of_a_closed_panel(notebook: Notebook) -> None:
    from ipywidgets.widgets.widget import _instances

    before = set(_instances)
    made = nbseed.Panel()
    for _ in range(25):
        notebook.ok("random.random()")
    notebook.ok(TRAIN)
    made.close()
    assert set(_instances) == before


def test_unload_closes_it(shell: InteractiveShell) -> None:
    with loaded(shell) as notebook:
        notebook.ok("%rngpanel")
        made = widget._open[-1]
    assert made.is_closed
    assert widget._open == []


def test_the_magic_shows_one_panel_again_and_again(notebook: Notebook) -> None:
    notebook.ok("%rngpanel")
    notebook.ok("%rngpanel")
    assert len(widget._open) == 1
    assert str(notebook.run("%rngpanel now").error) == "%rngpanel takes nothing, got 'now'"


def test_a_new_panel_begins_a_new_ribbon(notebook: Notebook) -> None:
    first = nbseed.Panel()
    notebook.ok("random.random()")
    first.close()
    second = nbseed.Panel()
    assert columns(second) == []
    second.close()


# -- the buttons -----------------------------------------------------------------------------------


def test_seed_does_what_the_magic_does(notebook: Notebook, panel: Panel) -> None:
    said = notebook.ok("%seed 5").out.strip()
    wanted = nbseed.snapshot()
    notebook.ok("%seed 3")
    panel._seed.value = " 5 "
    click(panel, "Seed")
    assert status(panel) == said
    assert nbseed.snapshot().states == wanted.states
    assert "seed 5 in force" in page(panel)
    assert "seeded with 5" in page(panel)


@pytest.mark.parametrize("text", ["three", "-1", "4294967296", "1.5", EVIL])
def test_a_seed_that_is_none_is_refused_in_the_status_line(
    text: str, notebook: Notebook, panel: Panel
) -> None:
    before = nbseed.snapshot()
    panel._seed.value = text
    click(panel, "Seed")
    assert status(panel) == f"not done: N is an integer from 0 to 4294967295, got {text}"
    assert nbseed.snapshot() == before
    assert panel._undo_button.disabled
    assert "<img src=x" not in page(panel)


def test_without_a_number_the_seed_in_force_is_said(panel: Panel) -> None:
    click(panel, "Seed")
    assert status(panel) == "seed 3 in force"


def test_a_checkpoint_that_is_taken_is_the_cells_own(notebook: Notebook, panel: Panel) -> None:
    panel._name.value = "here"
    click(panel, "Checkpoint")
    mark = nbseed.snapshot().fingerprint[:8]
    assert status(panel).startswith(f"checkpoint here taken, {mark}: python, ")
    assert panel._chosen.value == "here"
    first = notebook.ok("random.random()").value
    assert notebook.ok("%%rngcheckpoint here\nrandom.random()").value == first


@pytest.mark.parametrize("name", ["", "  ", "-x"])
def test_a_checkpoint_needs_a_name(name: str, panel: Panel) -> None:
    panel._name.value = name
    click(panel, "Checkpoint")
    assert status(panel) == f"not done: a checkpoint needs a name, got {name.strip()!r}"
    assert CHECKPOINTS.names() == []


def test_restore_and_undo(notebook: Notebook, panel: Panel) -> None:
    notebook.ok(TRAIN)
    start = CHECKPOINTS.find("train").snapshot
    notebook.ok("random.random()")
    here = nbseed.snapshot()
    click(panel, "Restore")
    assert status(panel).startswith(f"restored train, {start.fingerprint[:8]}: ")
    assert nbseed.snapshot().states == start.states
    click(panel, "Undo")
    assert status(panel) == "undone"
    assert nbseed.snapshot() == here
    assert panel._undo_button.disabled


def test_a_seed_is_undone_with_all_that_was_in_force(notebook: Notebook, panel: Panel) -> None:
    notebook.ok("%seed 3 --pin-entropy --each-cell")
    before, regime = nbseed.snapshot(), nbseed.seeding.in_force()
    panel._seed.value = "5"
    click(panel, "Seed")
    assert nbseed.seeding.in_force() != regime
    click(panel, "Undo")
    assert nbseed.seeding.in_force() == regime
    assert nbseed.snapshot() == before


def test_drop_and_undo(notebook: Notebook, panel: Panel) -> None:
    notebook.ok(TRAIN)
    notebook.ok(TRAIN)
    click(panel, "Drop")
    assert status(panel) == "dropped train: 1 checkpoint and the runs"
    assert panel._chosen.options == ()
    assert CHECKPOINTS.names() == []
    click(panel, "Undo")
    assert [run.number for run in nbseed.runs("train")] == [1, 2]
    assert panel._chosen.value == "train"
    assert notebook.ok(TRAIN).out.startswith("train, run 3: rewound to ")


@pytest.mark.parametrize("name", ["Restore", "Drop", "Compare"])
def test_without_a_checkpoint_the_buttons_say_so(name: str, panel: Panel) -> None:
    click(panel, name)
    assert status(panel) == "not done: there is no checkpoint yet"
    assert panel._undo_button.disabled


def test_compare_marks_what_differs_until_it_is_let_go(notebook: Notebook, panel: Panel) -> None:
    notebook.ok(TRAIN)
    click(panel, "Compare")
    assert status(panel) == "train and now: differ: torch.cpu"
    assert page(panel).count("≠ differs") == 1
    notebook.ok("random.random()")
    assert page(panel).count("≠ differs") == 2
    click(panel, "Compare")
    assert "≠ differs" not in page(panel)


def test_sync_gives_a_state_to_the_sisters(notebook: Notebook, devices: Devices) -> None:
    notebook.ok("%seed 3")
    panel = nbseed.Panel()
    assert "torch.cuda: 4 devices, all in step" in page(panel)
    devices.draw(2)
    notebook.ok("pass")
    assert "torch.cuda: 4 devices, not in step: 2 apart" in page(panel)
    panel._source.value = "torch.cuda:2"
    click(panel, "Sync")
    assert status(panel) == "torch.cuda:0, 1, 3 set to the state of torch.cuda:2"
    assert "torch.cuda: 4 devices, all in step" in page(panel)
    click(panel, "Undo")
    assert "torch.cuda: 4 devices, not in step: 2 apart" in page(panel)
    panel.close()


def test_while_a_cell_runs_a_click_waits(notebook: Notebook, panel: Panel) -> None:
    notebook.ns["press"] = lambda: click(panel, "Seed")
    panel._seed.value = "5"
    before = nbseed.snapshot()
    notebook.ok("press()")
    assert status(panel) == "not done: a cell runs: click again when it has ended"
    assert nbseed.snapshot() == before


def test_a_fault_is_read_in_the_status_line(
    notebook: Notebook, panel: Panel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(name: str) -> str:
        raise RuntimeError(EVIL)

    notebook.ok(TRAIN)
    monkeypatch.setattr(widget.actions, "restore", broken)
    click(panel, "Restore")
    assert status(panel) == f"not done: RuntimeError: {EVIL}"
    assert "<img src=x" not in page(panel)


# -- the losses ------------------------------------------------------------------------------------


def test_the_overlay_is_drawn_with_its_numbers_and_anew_after_each_run(
    notebook: Notebook, panel: Panel
) -> None:
    assert "<img" not in page(panel)
    notebook.ok(TRAIN)
    assert '<img alt="train: 1 run, 1 step"' in page(panel)
    notebook.ok(TRAIN)
    assert '<img alt="train: 2 runs, bit-identical"' in page(panel)
    losses = nbseed.runs("train")[0].losses["loss"]
    assert page(panel).count(f"<td>{float(losses[0])!r}</td>") == 4  # first and last of two runs
    click(panel, "Losses")
    assert "<img" not in page(panel)


# -- without a front end ---------------------------------------------------------------------------


def test_a_table_stands_in_where_no_widget_can_be_shown(notebook: Notebook, panel: Panel) -> None:
    notebook.ok(f'%%rngcheckpoint "{EVIL}"\nrandom.random()')
    found = panel._repr_mimebundle_()
    bundle = found[0] if isinstance(found, tuple) else found
    assert set(bundle) == {
        "application/vnd.jupyter.widget-view+json", "text/html", "text/plain",
    }  # fmt: skip
    assert re.findall(r"<code>([0-9a-f]{8})</code>", bundle["text/html"]) == now()
    assert "<img" not in bundle["text/html"]
    lines = bundle["text/plain"].splitlines()
    assert lines[0] == "seed 3 in force"
    assert re.split("  +", lines[1]) == ["generator", "state", "last moved by", "draws"]
    assert [line.split()[1] for line in lines[2:]] == now()
    assert bundle["text/plain"] == repr(panel)
    json.dumps(bundle)


def test_in_a_terminal_the_magic_prints_the_table(notebook: Notebook) -> None:
    lines = notebook.ok("%rngpanel").lines
    assert lines[0] == "seed 3 in force"
    assert [line.split()[1] for line in lines[2:]] == now()
