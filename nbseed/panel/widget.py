"""The panel's widget: pages as they change, and a button for each magic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from IPython.core.error import UsageError
from IPython.core.getipython import get_ipython
from IPython.display import DisplayHandle, display
from ipywidgets import HTML, Box, Button, Dropdown, HBox, Text, ToggleButton, VBox

from .. import actions, seeding
from ..arguments import seed_number
from ..checkpoints import CHECKPOINTS
from ..curves import compare, verdict
from ..errors import NbseedError
from ..ledger import LEDGER
from ..overlay import on_any_ground
from ..snapshot import restore, snapshot
from ..sync import families
from . import pages
from .history import COLUMNS, Column, History
from .rows import Now, now

_CHUNK = 20  # columns of the ribbon in one box: an update sends the names of one box's
_LOOKS = ("layout", "style")  # widgets of their own
_WAIT = "a cell runs: click again when it has ended"

_history = History()
_open: list[Panel] = []


class Panel(VBox):  # type: ignore[misc]
    """What each generator is at after each cell, with buttons for the magics.

    It follows the cells from the moment it is made until `close`. Without a front end for widgets
    it is shown as a table.

    Examples
    --------
    >>> nbseed.Panel()  # doctest: +SKIP
    """

    def __init__(self) -> None:
        self._heading, self._table = HTML(), HTML()
        self._status = HTML(pages.status(""))
        self._lines, self._ribbon = HTML(), Box()
        self._ribbon.add_class("nbseed-ribbon")
        self._look: dict[str, Any] = {}  # of all columns: each of its own would be sent, too
        self._picture, self._drawn = HTML(), (None, 0)
        self._shown: Column | None = None
        self._undo: Callable[[], None] | None = None
        self._names: list[str] = []  # of the ribbon's lines, as they are shown
        self._stand_ins: list[DisplayHandle] = []
        controls = self._controls()
        super().__init__(
            [
                HTML(pages.style(live=True)),
                self._heading,
                self._table,
                self._lines_and_ribbon(),
                *controls,
                self._status,
                self._picture,
            ]
        )
        self.add_class("nbseed-panel")
        if not _open:
            _history.clear()
        if _follow not in LEDGER.listeners:
            LEDGER.listeners.append(_follow)
        _open.append(self)
        self._update(now(self._beside()))

    # -- the parts ---------------------------------------------------------------------------------

    def _lines_and_ribbon(self) -> HBox:
        row = HBox([self._lines, self._ribbon])
        self._lines.layout.flex = "none"
        self._ribbon.layout.flex = "1 1 auto"
        return row

    def _controls(self) -> list[HBox]:
        # Sent when one leaves the field, so before a click: keystrokes are sent late when many.
        self._seed = Text(placeholder="seed", tooltip="N of %seed N", continuous_update=False)
        self._name = Text(placeholder="name", tooltip="a checkpoint", continuous_update=False)
        self._chosen = Dropdown(options=(), tooltip="a checkpoint")
        self._source = Dropdown(options=(), tooltip="the device whose state the others get")
        self._compare = ToggleButton(
            False, description="Compare", tooltip="%rng diff: mark what differs from it"
        )
        self._losses = ToggleButton(True, description="Losses", tooltip="%losses: the overlay")
        self._undo_button = _button("Undo", "take the last of these back", self._click_undo)
        self._undo_button.disabled = True
        self._sync = _button("Sync", "%rng sync: give its state to its sisters", self._click_sync)
        self._chosen.observe(self._choose, "value")
        self._compare.observe(self._click_compare, "value")
        self._losses.observe(self._show_losses, "value")
        of_one = [
            _button("Restore", "%rng restore: put the generators back to it", self._click_restore),
            self._compare,
            _button("Drop", "%rng drop: forget it and its runs", self._click_drop),
            self._losses,
        ]
        for entry in (self._seed, self._name, self._chosen, self._source):
            entry.layout.width = "140px"
        self._of_devices = HBox([self._source, self._sync])
        rows = [
            HBox([self._seed, _button("Seed", "%seed N", self._click_seed), self._undo_button]),
            HBox(
                [
                    self._name,
                    _button("Checkpoint", "%rng checkpoint: take it here", self._click_checkpoint),
                ]
            ),
            HBox([self._chosen, *of_one]),
            self._of_devices,
        ]
        for row in rows:
            row.layout.flex_flow = "row wrap"
        for button in (self._compare, self._losses):
            button.layout.width = "auto"
        return rows

    # -- what is shown -----------------------------------------------------------------------------

    def _update(self, seen: Now) -> None:
        """Show how things are; what is as it was is not sent again."""
        beside = self._chosen.value if self._compare.value else None
        before = self._heading.value, self._table.value
        self._heading.value = pages.heading(seen)
        self._table.value = pages.table(seen, beside)
        moved = (self._heading.value, self._table.value) != before
        new = _history.since(self._shown.number if self._shown else 0)
        last = self._shown
        for column in new:
            moved = moved or not column.is_still(last)
            last = column
        if moved and new:
            self._extend(new)
        names = tuple(CHECKPOINTS.names())
        if self._chosen.options != names:
            value = self._chosen.value
            self._chosen.options = names
            self._chosen.value = value if value in names else next(iter(names), None)
        sources = tuple(name for names in families(seen.taken.states).values() for name in names)
        if self._source.options != sources:
            self._source.options = sources
            self._source.value = next(iter(sources), None)
        self._of_devices.layout.display = "" if sources else "none"
        self._show_losses()

    def _extend(self, new: Sequence[Column]) -> None:
        """Put columns at the ribbon's right end; the boxes hold the newest first."""
        if self._names != _history.lines:
            if pages.thin(_history.lines) != pages.thin(self._names):  # all columns change
                new = list(_history.columns)
                for part in self._ribbon.children:
                    _close(part)
                self._ribbon.children = ()
            self._names = list(_history.lines)
            self._lines.value = pages.lines(self._names)
        for column in new:
            page = HTML(pages.column(column, self._names), **self._look)
            self._look = {"layout": page.layout, "style": page.style}
            boxes = self._ribbon.children
            if boxes and len(boxes[0].children) < _CHUNK:
                boxes[0].children = (page, *boxes[0].children)
            else:
                box = Box((page,), layout=self._look["layout"])
                self._ribbon.children = (box, *boxes)
        while sum(len(box.children) for box in self._ribbon.children) > COLUMNS:
            *kept, oldest = self._ribbon.children
            self._ribbon.children = tuple(kept)
            _close(oldest)
        self._shown = new[-1]

    def _show_losses(self, change: Any = None) -> None:
        """The overlay of the chosen checkpoint, drawn anew when it has another run."""
        name = self._chosen.value
        runs = CHECKPOINTS.runs(name) if name in CHECKPOINTS.names() else []
        runs = [run for run in runs if "loss" in run.values]
        if not (self._losses.value and runs):
            self._drawn, self._picture.value = (None, 0), ""
            return
        if self._drawn == (name, runs[-1].turn):
            return
        said = f"{name}: {verdict(runs)}"
        self._picture.value = pages.losses(on_any_ground(runs), said, compare(runs))
        self._drawn = (name, runs[-1].turn)

    def _beside(self) -> Any:
        """The snapshot that the rows are compared with, or None."""
        name = self._chosen.value
        if not self._compare.value or name not in CHECKPOINTS.names():
            return None
        return CHECKPOINTS.find(name).snapshot

    # -- the buttons -------------------------------------------------------------------------------

    def _do(self, action: Callable[[], str], by: str, moves: bool = False) -> None:
        """Do what a magic does, say what it said, and let all panels show it.

        With `moves` the generators and checkpoints may be other ones after it: that can be undone.
        """
        if LEDGER.running:
            self._say(_WAIT, good=False)
            return
        back = _way_back() if moves else None
        try:
            said, good = action(), True
        except (NbseedError, UsageError) as error:
            said, good = str(error), False
        except Exception as error:  # a callback's error would only be in a log
            said, good = f"{type(error).__name__}: {error}", False
        if good and back is not None:
            self._undo, self._undo_button.disabled = back, False
        regime = seeding.in_force()
        LEDGER.acted(by, regime.seed if regime is not None and by == "Seed" else None)
        self._say(said, good)
        _refresh()

    def _say(self, said: str, good: bool = True) -> None:
        self._status.value = pages.status(said, good)

    def _named(self, what: Dropdown) -> str:
        if what.value is None:
            raise NbseedError(f"there is no {what.tooltip.removeprefix('a ')} yet")
        return str(what.value)

    def _click_seed(self, _: Any) -> None:
        text = self._seed.value.strip()
        if not text:
            self._do(actions.in_force, "Seed")
            return
        self._do(lambda: actions.seed(seed_number(text) or 0), "Seed", moves=True)

    def _click_checkpoint(self, _: Any) -> None:
        name = self._name.value.strip()
        self._do(lambda: actions.checkpoint(name), "Checkpoint", moves=name in CHECKPOINTS.names())
        if name in self._chosen.options:
            self._chosen.value = name

    def _click_restore(self, _: Any) -> None:
        self._do(lambda: actions.restore(self._named(self._chosen)), "Restore", moves=True)

    def _click_compare(self, change: Any) -> None:
        if not change["new"]:
            self._do(lambda: "", "Compare")
            return
        self._do(lambda: actions.compare(self._named(self._chosen)), "Compare")

    def _click_drop(self, _: Any) -> None:
        self._do(lambda: actions.drop(self._named(self._chosen)), "Drop", moves=True)

    def _click_sync(self, _: Any) -> None:
        self._do(lambda: actions.synchronize(self._named(self._source)), "Sync", moves=True)

    def _click_undo(self, _: Any) -> None:
        def undo() -> str:
            if self._undo is None:
                return "nothing to undo"
            self._undo()
            self._undo, self._undo_button.disabled = None, True
            return "undone"

        self._do(undo, "Undo")

    def _choose(self, change: Any) -> None:
        if self._compare.value and change["new"] is not None:
            self._click_compare({"new": True})
        self._show_losses()

    # -- its life ----------------------------------------------------------------------------------

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called, or the extension unloaded."""
        return self not in _open

    def close(self) -> None:
        """Follow no more cells, and leave the page; nothing is left behind."""
        if self in _open:
            _open.remove(self)
        if not _open and _follow in LEDGER.listeners:
            LEDGER.listeners.remove(_follow)
        parts = [part for child in self.children for part in _tree(child)]
        looks = [getattr(part, name, None) for part in (self, *parts) for name in _LOOKS]
        for part in [*parts, *filter(None, looks)]:
            part.close()
        super().close()
        for stand_in in self._stand_ins:
            stand_in.update({"text/plain": ""}, raw=True)
        self._stand_ins.clear()

    def __repr__(self) -> str:
        return "<closed panel>" if self.is_closed else pages.text(now())

    def _repr_mimebundle_(self, **options: Any) -> Any:
        seen = now()
        bundle = super()._repr_mimebundle_(**options)
        data, *rest = bundle if isinstance(bundle, tuple) else (bundle,)
        data = {**data, "text/plain": pages.text(seen), "text/html": pages.static(seen, _history)}
        return (data, *rest) if rest else data

    def _ipython_display_(self) -> None:
        """Two outputs: the live panel, and the table that stands in where it cannot be.

        A front end that knows widgets shows a widget or an error, and never what else is in the
        same output; so the table has an output of its own, which the live panel hides.
        """
        if not hasattr(get_ipython(), "kernel"):
            print(self)
            return
        bundle = super()._repr_mimebundle_()
        data, *_ = bundle if isinstance(bundle, tuple) else (bundle,)
        display({**data, "text/plain": ""}, raw=True)
        seen = now()
        page = {"text/html": pages.saved(seen, _history), "text/plain": pages.text(seen)}
        stand_in = display(page, raw=True, display_id=True)
        if stand_in is not None:
            self._stand_ins.append(stand_in)


def close_all() -> None:
    """Close every panel: the extension is unloaded."""
    for panel in list(_open):
        panel.close()


def _follow(ended: Sequence[Any]) -> None:
    """A cell has ended: one more column, and every panel shows how things are."""
    seen = now()
    _history.add(LEDGER.last, seen.taken.fingerprints, ended)
    _refresh(seen)


def _refresh(seen: Now | None = None) -> None:
    plain = now() if seen is None else seen
    for panel in list(_open):
        beside = panel._beside()
        panel._update(plain if beside is None else now(beside))


def _way_back() -> Callable[[], None]:
    """A call that brings back the generators, the seed in force and the checkpoints of now."""
    taken, seed, checkpoints = snapshot(), seeding.kept(), CHECKPOINTS.keep()

    def go_back() -> None:
        seed()
        checkpoints()
        restore(taken, strict=False)

    return go_back


def _button(name: str, tooltip: str, click: Callable[[Any], None]) -> Button:
    button = Button(description=name, tooltip=tooltip)
    button.layout.width = "auto"
    button.on_click(click)
    return button


def _tree(widget: Any) -> list[Any]:
    """A widget and what is in it: ipywidgets closes only the outermost."""
    return [widget, *(part for child in getattr(widget, "children", ()) for part in _tree(child))]


def _close(box: Any) -> None:
    for part in _tree(box):
        part.close()
