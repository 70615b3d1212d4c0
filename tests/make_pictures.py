"""Make the README's pictures anew: ``python tests/make_pictures.py``.

Needs Debian's ``chromium``. Runs JupyterLab on loopback in a temporary folder, types into it as a
user would, and keeps what is seen in ``notebooks/images``.
"""

from __future__ import annotations

import base64
import tempfile
from pathlib import Path

import nbformat
from browser import chromium, opened, served, write
from playwright.sync_api import Browser

IMAGES = Path(__file__).parent.parent / "notebooks" / "images"
CELLS = [
    "%load_ext nbseed\n%seed 3",
    """%%rngcheckpoint train
import torch
model = torch.nn.Linear(4, 1)
for step in range(200):
    x = torch.randn(32, 4)
    loss = (model(x) - x.sum(1, keepdim=True)).abs().mean()
    model.zero_grad()
    loss.backward()
    for p in model.parameters():
        p.data -= 0.01 * p.grad
loss.item()""",
]
DIFFERING = [
    """%load_ext nbseed
%seed 3
import numpy as np
import torch
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)""",
    """%%rngcheckpoint train
rng = np.random.default_rng()
for step in range(200):
    x = torch.randn(32, 4) + rng.normal()
    loss = (model(x) - x.sum(1, keepdim=True)).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()""",
    "%rng why",
]
PANEL = [
    f"""%load_ext nbseed
%seed 3
import random, sys, torch
sys.path.insert(0, {str(Path(__file__).parent)!r})
from standin import Devices
torch.cuda = Devices("cuda", 4)
torch.cuda.get_device_name = lambda index: "NVIDIA H200"
torch.cuda.init()
torch.cuda.manual_seed_all(3)""",
    "%rngpanel",
    """%%rngcheckpoint train
model = torch.nn.Linear(4, 1)
for step in range(60):
    x = torch.randn(32, 4)
    loss = (model(x) - x.sum(1, keepdim=True)).abs().mean()
    model.zero_grad()
    loss.backward()
    for p in model.parameters():
        p.data -= 0.02 * p.grad""",
    "random.random()",
    "torch.cuda.draw(2)",
    "torch.rand(3)",
]


def picture(address: str, browser: Browser, order: list[int], shown: list[int], name: str) -> None:
    """Run cells in an order, and keep a picture of some that stand below each other."""
    notebook = opened(browser, address)
    notebook.run_all(*order)
    notebook.page.mouse.click(700, 1550)
    notebook.page.wait_for_timeout(500)
    boxes = [notebook.cell(index).bounding_box() for index in shown]
    first, last = boxes[0], boxes[-1]
    assert first is not None
    assert last is not None
    height = last["y"] + last["height"] - first["y"]
    clip = {"x": first["x"], "y": first["y"], "width": 740, "height": height}
    notebook.page.screenshot(path=IMAGES / name, clip=clip)  # type: ignore[arg-type]
    notebook.page.close()


def panel(address: str, browser: Browser) -> None:
    """The panel after a few cells, with one of four devices apart."""
    notebook = opened(browser, address, width=900)
    notebook.run_all(0, 1, 2, 5, 3, 2, 3, 5, 4)
    notebook.page.wait_for_timeout(1500)
    notebook.cell(1).locator(".nbseed-panel").screenshot(path=IMAGES / "panel.png")
    notebook.page.close()


def attach(path: Path, cell_id: str, name: str) -> None:
    """Put a picture into a notebook's text cell: a copy of the notebook alone must show it."""
    notebook = nbformat.read(path, 4)
    cell = next(cell for cell in notebook.cells if cell.id == cell_id)
    data = base64.b64encode((IMAGES / name).read_bytes()).decode()
    cell.attachments = {name: {"image/png": data}}
    nbformat.write(notebook, path)


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write(folder / "rerun.ipynb", CELLS)
        write(folder / "why.ipynb", DIFFERING)
        write(folder / "panel.ipynb", PANEL)
        with served(folder) as address, chromium() as browser:
            picture(address.format(name="rerun.ipynb"), browser, [0, 1, 1], [1], "rerun.png")
            picture(address.format(name="why.ipynb"), browser, [0, 1, 1, 2], [1, 2], "why.png")
            panel(address.format(name="panel.ipynb"), browser)
    attach(IMAGES.parent / "01_quickstart.ipynb", "panel", "panel.png")


if __name__ == "__main__":
    main()
