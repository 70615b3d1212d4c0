"""The generators and the checkpoints as small tables."""

from __future__ import annotations

import random
from html.parser import HTMLParser

import numpy as np
import pytest

import nbseed
from nbseed import generators, seeding, tables
from nbseed.checkpoints import CHECKPOINTS
from nbseed.draws import Draws
from nbseed.ledger import Ledger
from nbseed.tables import Table
from nbseed.text import Text


def rows_of(page):
    """The cells of a page's table, row by row, and the text below it."""

    class Reader(HTMLParser):
        rows, below, inside = [], "", False

        def handle_starttag(self, tag, attrs):
            if tag == "tr":
                self.rows = [*self.rows, []]
            elif tag in ("td", "th"):
                self.rows[-1].append("")
                self.inside = True

        def handle_endtag(self, tag):
            if tag in ("td", "th"):
                self.inside = False

        def handle_data(self, data):
            if self.inside:
                self.rows[-1][-1] += data
            else:
                self.below += data

    reader = Reader()
    reader.feed(page)
    return reader.rows, reader.below


@pytest.mark.parametrize(
    ("table", "text"),
    [
        (Table(("a", "bb"), [("1", "2")]), "a  bb\n1  2"),
        (Table(("a", "b"), [("longer", "x"), ("y", "")]), "a       b\nlonger  x\ny"),
        (Table(("a", "b"), [("1", "2")], ("below", "more")), "a  b\n1  2\nbelow\nmore"),
        (Table(("a", "b"), [], ("nothing yet",)), "nothing yet"),
        (Table(("a", "b"), []), ""),
    ],
)
def test_a_table_is_columns_of_text_and_sentences_below(table, text):
    assert repr(table) == text


@pytest.mark.parametrize(
    ("table", "rows", "below"),
    [
        (Table(("a", "b"), [("1", "2")], ("x",)), [["a", "b"], ["1", "2"]], "x"),
        (Table(("a", "b"), [], ("nothing yet",)), [], "nothing yet"),
        (
            Table(("a",), [("<script>alert('1')</script> & \"",)], ("<b>",)),
            [["a"], ["<script>alert('1')</script> & \""]],
            "<b>",
        ),
    ],
)
def test_a_table_in_html_holds_the_same_as_text(table, rows, below):
    page = table._repr_html_()
    assert rows_of(page) == (rows, below)
    assert "<script" not in page


def test_every_generator_is_listed_with_its_fingerprint():
    space = {"rng": np.random.default_rng(3)}
    generators.look_into(space)
    nbseed.register("mine", random.Random(4))
    taken = nbseed.snapshot()
    table = tables.of_generators(Ledger())
    assert table.headings == ("generator", "state", "last moved by", "draws")
    assert table.rows == [
        *((name, mark[:8], "", "") for name, mark in taken.fingerprints.items()),
        ("all", taken.fingerprint[:8], "", ""),
    ]
    assert {"python", "numpy", "mine", "user:rng"} <= {name for name, *_ in table.rows}
    assert table.below == taken.notes


def moves(ledger):
    """The rows of the table that say who moved a generator."""
    return {name: said for name, _, *said in tables.of_generators(ledger).rows if any(said)}


def test_who_moved_a_generator_last_is_beside_it_and_how_far():
    space = {"rng": np.random.default_rng(3), "far": np.random.default_rng(4)}
    generators.look_into(space)
    ledger = Ledger()
    ledger.enter("[1]", "x = 1")
    random.random()
    assert moves(ledger) == {"python": ["[1], this cell", "2 words"]}
    ledger.leave("x = 1", {})
    assert moves(ledger) == {"python": ["[1]", "2 words"]}
    np.random.rand()
    ledger.enter("[2] train", "rng.random()")
    assert moves(ledger) == {
        "python": ["[1]", "2 words"],
        "numpy": ["between [1] and [2] train", "2 words"],
    }
    space["rng"].random()
    space["far"].random()  # the cell does not mention it
    ledger.leave("rng.random()", {"python": Draws("drawn", 7)})
    assert moves(ledger) == {
        "python": ["[2] train", "7 words"],
        "numpy": ["between [1] and [2] train", "2 words"],
        "user:rng": ["[2] train", "1 64-bit word"],
    }


def test_a_seed_is_what_moved_the_streams_but_not_the_users_objects():
    space = {"rng": np.random.default_rng(3)}
    generators.look_into(space)
    ledger = Ledger()
    ledger.enter("[1]", "rng")
    seeding.seed(5)
    random.random()
    space["rng"].random()
    ledger.leave("rng", {})
    said = moves(ledger)
    assert said["python"] == said["numpy"] == ["[1]", "seeded with 5"]
    assert said["user:rng"] == ["[1]", "1 64-bit word"]
    ledger.enter("[2]", "")
    random.random()
    ledger.leave("", {})
    assert moves(ledger)["python"] == ["[2]", "2 words"]


def test_a_generator_that_stayed_where_it_was_keeps_its_last_move():
    ledger = Ledger()
    ledger.enter("[1]", "")
    random.random()
    ledger.leave("", {})
    ledger.enter("[2]", "")
    ledger.leave("", {"python": Draws("still")})
    assert moves(ledger) == {"python": ["[1]", "2 words"]}


def test_looking_moves_no_generator():
    before = random.getstate()
    tables.of_generators(Ledger())
    assert random.getstate() == before


def test_no_checkpoints_are_a_sentence():
    table = tables.of_checkpoints()
    assert repr(table) == "no checkpoints yet: %%rngcheckpoint makes one"
    said = "<div>no checkpoints yet: %%rngcheckpoint makes one</div>"
    assert table._repr_html_() == f'<div class="nbseed-table">{said}</div>'


def test_every_checkpoint_is_listed_with_its_seed_and_runs():
    def run(name):
        CHECKPOINTS.end(CHECKPOINTS.begin(f"name:{name}", name, Text("")), "ok")

    run("a")
    seeding.seed(3)
    run("train")
    run("train")
    seeding.seed(14)
    run("train")
    marks = [c.snapshot.fingerprint[:8] for c in CHECKPOINTS.kept.values()]
    assert repr(tables.of_checkpoints()).splitlines() == [
        "checkpoint  seed  state     runs",
        f"a           none  {marks[0]}  1",
        f"train       3     {marks[1]}  2",
        f"train       14    {marks[2]}  1",
    ]
