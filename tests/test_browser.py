"""The panel in real front ends: JupyterLab 4 and Notebook 7 in Chromium; pictures are kept.

They stand in the folder that ``NBSEED_PICTURES`` names, by default ``.pictures``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browser import CHROMIUM, Notebook, chromium, opened, served, write

PICTURES = Path(os.environ.get("NBSEED_PICTURES", Path(__file__).parent.parent / ".pictures"))
EVIL = "<img src=x onerror=document.title='broken'>"
CELLS = {
    "load": f"""%load_ext nbseed
%seed 3
import random, sys, time, torch
sys.path.insert(0, {str(Path(__file__).parent)!r})
from standin import Devices
torch.cuda = Devices("cuda", 4)
torch.cuda.get_device_name = lambda index: "Stand-in 9000"
torch.cuda.init()""",
    "panel": "%rngpanel",
    "train": """%%rngcheckpoint train
model = torch.nn.Linear(4, 1)
for step in range(40):
    x = torch.randn(32, 4)
    loss = (model(x) - x.sum(1, keepdim=True)).abs().mean()
    model.zero_grad()
    loss.backward()
    for p in model.parameters():
        p.data -= 0.02 * p.grad""",
    "draw": "random.random()",
    "part": "torch.cuda.draw(1)",
    "step": "torch.cuda.manual_seed_all(3)",
    "fail": "random.random()\n1 / 0",
    "print": """import ipywidgets
bar = ipywidgets.IntProgress(max=200)
display(bar)
for i in range(1000):
    print(i)
    bar.value = i // 5""",
    "wait": """before = random.getstate()
time.sleep(3)
print("untouched" if random.getstate() == before else "moved")""",
    "evil": f'%%rngcheckpoint "{EVIL}"\nrandom.random()',
    "again": "%rngpanel",
    "unload": "%unload_ext nbseed",
}
ORDER = list(CELLS)

pytestmark = pytest.mark.kernel


class Front:
    """A notebook with the panel, and what a user reads in it."""

    def __init__(self, notebook: Notebook) -> None:
        self.notebook, self.page = notebook, notebook.page
        self.turn = 0

    def run(self, *names: str) -> None:
        for name in names:
            self.notebook.run(ORDER.index(name))

    @property
    def panel(self):
        return self.notebook.cell(ORDER.index("panel")).locator(".nbseed-panel")

    def state(self, name: str) -> str:
        """The 8 digits that the panel shows for a generator."""
        cell = self.page.locator("td", has_text=re.compile(rf"^{re.escape(name)}(?!\d)"))
        row = self.panel.locator("tr", has=cell)
        return row.locator("code").inner_text()

    def becomes(self, name: str, wanted: Callable[[str], bool]) -> None:
        """Wait until the panel shows such a state: it comes a message after the status line."""
        for _ in range(100):
            if wanted(self.state(name)):
                return
            self.page.wait_for_timeout(100)
        raise AssertionError(f"{name} stays at {self.state(name)}")

    def status(self, wanted: str) -> None:
        """Wait until the status line holds a text."""
        line = self.panel.locator("[role=status]")
        for _ in range(100):
            if wanted in (line.text_content() or ""):
                return
            self.page.wait_for_timeout(100)
        raise AssertionError(f"the status line says {line.text_content()!r}, not {wanted!r}")

    def click(self, name: str) -> None:
        self.panel.get_by_role("button", name=name, exact=True).click()

    def see(self, text: str) -> None:
        self.panel.get_by_text(text).first.wait_for(timeout=20_000)

    def columns(self) -> int:
        return self.panel.locator(".nbseed-ribbon .c").count()

    def command(self, name: str, **arguments: object) -> None:
        self.page.evaluate(
            "([name, args]) => { window.jupyterapp.commands.execute(name, args) }",
            [name, arguments],
        )

    def picture(self, name: str) -> None:
        PICTURES.mkdir(exist_ok=True)
        self.page.wait_for_timeout(500)
        self.panel.first.screenshot(path=PICTURES / f"{name}.png")


@pytest.fixture(scope="module", params=["jupyterlab", "notebook"])
def application(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def front(application: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    if not Path(CHROMIUM).exists():
        pytest.skip("needs Debian's chromium")
    folder = tmp_path_factory.mktemp(application)
    write(folder / "panel.ipynb", list(CELLS.values()))
    with served(folder, application) as address, chromium() as browser:
        front = Front(opened(browser, address.format(name="panel.ipynb")))
        front.run("load", "panel")
        front.see("seed 3 in force")
        yield front


def test_the_fingerprint_changes_with_a_draw_and_comes_back_with_a_rewind(front: Front) -> None:
    front.run("train")
    after = front.state("torch.cpu"), front.state("python")
    front.run("draw")
    assert front.state("python") != after[1]
    assert front.state("torch.cpu") == after[0]
    front.run("train")
    assert (front.state("torch.cpu"), front.state("python")) == after
    assert front.panel.locator(".c b", has_text="=").count() >= 1


def test_each_cell_adds_a_column_also_one_that_fails(front: Front) -> None:
    front.run("draw")
    count = front.columns()
    front.run("draw", "fail")
    assert front.columns() == count + 2
    newest = front.panel.locator(".nbseed-ribbon .c").first
    assert re.fullmatch(r"\[\d+\]", newest.get_attribute("title") or "")
    tile = newest.locator("i").first
    assert re.fullmatch(r"\[\d+\] python [0-9a-f]{8}", tile.get_attribute("title") or "")


def test_restore_goes_back_and_says_so_and_undo_takes_it_back(front: Front) -> None:
    front.run("train", "draw")
    here = front.state("python")
    front.panel.get_by_role("combobox").first.select_option("train")
    front.click("Restore")
    front.status("restored train, ")
    front.becomes("python", lambda state: state != here)
    front.click("Undo")
    front.status("undone")
    front.becomes("python", lambda state: state == here)


def test_devices_that_part_are_seen_and_sync_brings_them_together(front: Front) -> None:
    front.run("step")
    front.see("torch.cuda: 4 devices, all in step")
    front.run("part")
    front.see("torch.cuda: 4 devices, not in step: 1 apart")
    step = front.state("torch.cuda:0")
    front.becomes("torch.cuda:1", lambda state: state != step)
    parted = front.state("torch.cuda:1")
    front.panel.get_by_role("combobox").nth(1).select_option("torch.cuda:1")
    front.click("Sync")
    front.status("torch.cuda:0, 2, 3 set to the state of torch.cuda:1")
    front.see("torch.cuda: 4 devices, all in step")
    for index in range(4):
        front.becomes(f"torch.cuda:{index}", lambda state: state == parted)


def test_an_error_is_read_in_the_status_line(front: Front) -> None:
    front.panel.get_by_placeholder("seed").fill("three")
    front.click("Seed")
    front.status("not done: N is an integer from 0 to 4294967295, got three")


def test_the_panel_is_used_by_keyboard(front: Front, application: str) -> None:
    front.panel.get_by_placeholder("seed").focus()
    front.page.keyboard.press("Control+A")
    front.page.keyboard.type("14")
    front.page.keyboard.press("Tab")
    assert front.page.evaluate("document.activeElement.textContent") == "Seed"
    front.page.keyboard.press("Space")
    front.status("seed 14: ")
    front.page.keyboard.press("Shift+Tab")
    front.page.keyboard.press("Control+A")
    front.page.keyboard.type("3")
    front.page.keyboard.press("Tab")
    front.page.keyboard.press("Space")
    front.status("seed 3: ")
    front.picture(f"{application}-light")


def test_a_checkpoint_is_compared_and_dropped(front: Front) -> None:
    front.panel.get_by_placeholder("name").fill("here")
    front.click("Checkpoint")
    front.status("checkpoint here taken, ")
    front.click("Compare")
    front.status("here and now: no difference")
    front.run("draw")
    assert front.panel.locator(".d").count() == 1
    assert (
        front.panel.locator("tr", has=front.page.locator(".d")).inner_text().split()[0] == "python"
    )
    front.click("Compare")
    front.click("Drop")
    front.status("dropped here: 1 checkpoint and the runs")
    assert front.panel.locator(".d").count() == 0


def test_the_losses_are_drawn_with_their_numbers(front: Front) -> None:
    front.run("train", "train")
    front.panel.get_by_role("combobox").first.select_option("train")
    image = front.panel.locator("img")
    image.wait_for()
    assert re.fullmatch(r"train: .*\d.*", image.get_attribute("alt") or "")
    front.panel.locator("summary").click()
    assert front.panel.locator("details tr").count() >= 3


def test_a_cell_that_prints_and_moves_a_bar_is_not_disturbed(front: Front) -> None:
    front.run("print")
    output = front.notebook.cell(ORDER.index("print")).locator(".jp-OutputArea").first
    lines = output.locator(".jp-RenderedText").all_inner_texts()
    assert "".join(lines).split() == [str(number) for number in range(1000)]
    assert output.locator(".widget-inline-hbox").count() == 1
    assert output.locator(".nbseed").count() == 0


def test_a_click_while_a_cell_runs_does_not_reach_into_it(front: Front) -> None:
    """Such a click is refused, or served after the cell: that depends on the kernel."""
    cell = front.notebook.cell(ORDER.index("wait"))
    cell.locator(".cm-content").click()
    front.page.keyboard.press("Control+Enter")
    cell.locator(".jp-InputPrompt", has_text="[*]").wait_for()
    front.click("Restore")
    cell.get_by_text("untouched").wait_for(timeout=20_000)


def test_a_name_that_holds_html_is_shown_as_text(front: Front) -> None:
    front.run("evil")
    assert front.panel.get_by_role("combobox").first.get_by_text(EVIL).count() == 1
    front.panel.get_by_role("combobox").first.select_option(EVIL)
    front.click("Restore")
    front.status(f"restored {EVIL}")
    assert front.panel.locator("img[src=x]").count() == 0
    assert "broken" not in front.page.title()
    front.click("Drop")
    front.status("dropped ")


def test_shown_twice_the_panels_agree(front: Front) -> None:
    front.run("again", "draw")
    other = front.notebook.cell(ORDER.index("again")).locator(".nbseed-panel")
    assert (
        other.locator("code").all_text_contents() == front.panel.locator("code").all_text_contents()
    )


def test_it_follows_a_dark_theme_and_a_narrow_page(front: Front, application: str) -> None:
    front.command("apputils:change-theme", theme="JupyterLab Dark")
    front.page.wait_for_selector(
        "body[data-jp-theme-light=false]", state="attached", timeout=20_000
    )
    front.page.wait_for_timeout(1000)
    ground, ink = front.panel.locator("td code").first.evaluate(
        "e => [getComputedStyle(document.querySelector('.jp-Notebook')).backgroundColor,"
        " getComputedStyle(e).color]"
    )
    assert sum(map(int, re.findall(r"\d+", ground)[:3])) < 200
    assert sum(map(int, re.findall(r"\d+", ink)[:3])) > 500
    front.picture(f"{application}-dark")
    width = 660 if application == "jupyterlab" else 460  # of the page, with its margins
    front.page.set_viewport_size({"width": width, "height": 1600})
    front.page.wait_for_timeout(1000)
    box = front.panel.bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= width
    for part in front.panel.locator("table, button, .nbseed-ribbon").all():
        inner = part.bounding_box()
        assert inner is None or inner["x"] + inner["width"] <= box["x"] + box["width"] + 1
    front.picture(f"{application}-narrow")
    front.page.set_viewport_size({"width": 1100, "height": 1600})
    front.command("apputils:change-theme", theme="JupyterLab Light")
    front.page.wait_for_selector("body[data-jp-theme-light=true]", state="attached", timeout=20_000)


def test_after_a_reload_of_the_page_it_goes_on(front: Front) -> None:
    before = front.state("python")
    front.command("docmanager:save")
    front.page.wait_for_timeout(2000)
    front.page.reload()
    front.page.wait_for_selector(".nbseed-panel", timeout=60_000)
    assert front.state("python") == before
    front.run("draw")
    assert front.state("python") != before


def test_a_saved_notebook_that_is_opened_later_shows_the_table(
    front: Front, application: str
) -> None:
    output = front.notebook.cell(ORDER.index("panel")).locator(".jp-OutputArea").first
    table = output.locator(".nbseed-saved")
    assert table.count() == 1
    assert not table.is_visible()  # the panel is there
    front.command("docmanager:save")
    front.page.wait_for_timeout(1000)
    front.command("notebook:shutdown-kernel")
    front.page.wait_for_timeout(1000)
    front.page.reload()
    table.wait_for(state="visible", timeout=60_000)
    assert front.panel.count() == 0
    assert "seed 3 in force" in table.inner_text()
    assert re.search(r"torch\.cpu\s+[0-9a-f]{8}", table.inner_text())
    assert "when it is run again" in table.inner_text()
    output.screenshot(path=PICTURES / f"{application}-saved.png")
    front.page.wait_for_selector(
        ".jp-Notebook-ExecutionIndicator[data-status=idle], .jp-NotebookKernelStatus-idle, "
        ".jp-NotebookKernelLogo",
        timeout=60_000, state="attached",
    )  # fmt: skip


def test_after_a_restart_of_the_kernel_it_is_shown_anew(front: Front) -> None:
    front.command("notebook:restart-kernel")
    front.page.locator(".jp-Dialog .jp-mod-accept").click()
    front.page.wait_for_timeout(3000)
    front.run("load", "panel", "draw")
    front.see("seed 3 in force")
    assert front.columns() == 2
    front.run("unload")
    front.page.wait_for_timeout(500)
    assert front.panel.count() == 0
