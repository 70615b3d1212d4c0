"""Who moved which generator last: cells, what lies between them, seeds, objects of the user's."""

from __future__ import annotations

import random

import numpy as np
import pytest

from nbseed import generators, seeding
from nbseed.draws import Draws
from nbseed.ledger import Ledger, Move


@pytest.fixture
def ledger() -> Ledger:
    random.seed(1)
    np.random.seed(1)
    return Ledger()


def cell(ledger: Ledger, label: str, does=lambda: None, text: str = "", known=None) -> None:
    ledger.enter(label, text)
    does()
    ledger.leave(text, known or {})


def told(ledger: Ledger) -> dict[str, tuple[str, str]]:
    return {name: (move.by, move.how_far(name)) for name, move in ledger.moves.items()}


# -- cells and what lies between them --------------------------------------------------------------


def test_a_new_ledger_knows_of_no_move():
    assert Ledger().moves == {}
    assert Ledger().moves_now([]) == {}


def test_a_cell_that_draws_nothing_moves_nothing(ledger):
    cell(ledger, "[1]")
    assert ledger.moves == {}


def test_each_generator_is_moved_by_the_cell_that_drew_last(ledger):
    cell(ledger, "[1]", lambda: (random.random(), np.random.rand(3)))
    cell(ledger, "[2] train", random.random)
    cell(ledger, "[3]")
    assert told(ledger) == {
        "python": ("[2] train", "2 words"),
        "numpy": ("[1]", "6 words"),
    }


def test_a_draw_between_two_cells_is_told_as_that(ledger):
    cell(ledger, "[1]")
    random.random()
    cell(ledger, "[2]")
    assert told(ledger) == {"python": ("between [1] and [2]", "2 words")}


def test_a_draw_before_the_first_cell_is_nobodys(ledger):
    random.random()
    cell(ledger, "[1]")
    assert ledger.moves == {}


def test_a_cell_that_draws_what_was_drawn_between_is_told_for_both(ledger):
    cell(ledger, "[1]")
    random.random()
    ledger.enter("[2]", "")
    assert told(ledger) == {"python": ("between [1] and [2]", "2 words")}
    np.random.rand()
    ledger.leave("", {})
    assert told(ledger)["python"] == ("between [1] and [2]", "2 words")
    assert told(ledger)["numpy"] == ("[2]", "2 words")


def test_a_cell_that_puts_a_generator_back_has_not_moved_it(ledger):
    def borrows():
        state = random.getstate()
        random.random()
        random.setstate(state)

    cell(ledger, "[1]", borrows)
    assert ledger.moves == {}


def test_a_cell_that_failed_has_drawn_nevertheless(ledger):
    ledger.enter("[1]", "def (")
    random.random()
    ledger.leave("def (", {})
    assert told(ledger) == {"python": ("[1]", "2 words")}


def test_the_way_of_a_rewound_cell_is_what_is_known(ledger):
    known = {"python": Draws("drawn", 640), "numpy": Draws("still"), "gone": Draws("drawn", 1)}
    cell(ledger, "[1]", known=known)
    assert told(ledger) == {"python": ("[1]", "640 words")}


def test_a_rewound_generator_that_stood_still_was_moved_by_the_rewind(ledger):
    cell(ledger, "[1]", random.random, known={"python": Draws("still")})
    assert told(ledger) == {"python": ("[1]", "rewound")}


# -- seeds -----------------------------------------------------------------------------------------


def test_a_seeded_generator_is_told_with_its_seed_and_draws_do_not_matter(ledger):
    cell(ledger, "[1]", lambda: (seeding.seed(4), random.random()))
    assert told(ledger)["python"] == ("[1]", "seeded with 4")
    assert told(ledger)["numpy"] == ("[1]", "seeded with 4")
    cell(ledger, "[2]", random.random)
    assert told(ledger)["python"] == ("[2]", "2 words")
    assert told(ledger)["numpy"] == ("[1]", "seeded with 4")


def test_a_seed_that_the_library_got_itself_is_no_seed_of_ours(ledger):
    cell(ledger, "[1]", lambda: random.seed(4))
    assert ledger.moves["python"].seed is None
    assert ledger.moves["python"].how_far("python") == "re-seeded"


# -- up to this moment -----------------------------------------------------------------------------


def test_a_cell_that_runs_is_told_too_and_nothing_is_kept(ledger):
    cell(ledger, "[1]", np.random.rand)
    ledger.enter("[2]", "")
    random.random()
    now = ledger.moves_now(["python", "numpy"])
    assert {name: move.by for name, move in now.items()} == {
        "python": "[2], this cell", "numpy": "[1]",
    }  # fmt: skip
    assert set(ledger.moves) == {"numpy"}
    ledger.leave("", {})
    assert ledger.moves["python"].by == "[2]"


def test_between_cells_nothing_is_added(ledger):
    cell(ledger, "[1]")
    random.random()
    assert ledger.moves_now(["python"]) == {}


def test_what_is_told_now_is_a_copy(ledger):
    cell(ledger, "[1]", random.random)
    ledger.moves_now([]).clear()
    assert set(ledger.moves) == {"python"}


def test_a_label_is_kept_until_the_cell_ends(ledger):
    cell(ledger, "[7] größe, between", random.random)
    assert ledger.moves["python"].by == "[7] größe, between"


# -- objects of the user's -------------------------------------------------------------------------


def test_an_object_is_looked_at_where_a_cell_names_it(ledger):
    names = {"rng": np.random.default_rng(1), "other": np.random.default_rng(2)}
    generators.look_into(names)
    cell(ledger, "[1]", lambda: names["rng"].random(3), "rng.random(3)")
    cell(ledger, "[2]", lambda: names["other"].random(), "x = 1")
    assert told(ledger) == {"user:rng": ("[1]", "3 64-bit words")}


def test_an_object_that_moved_between_two_cells_that_name_it(ledger):
    rng = np.random.default_rng(1)
    generators.look_into({"rng": rng})
    cell(ledger, "[1]", text="rng")
    rng.random()
    cell(ledger, "[2]", text="x = 1")
    assert ledger.moves == {}
    cell(ledger, "[3]", text="print(rng)")
    assert told(ledger) == {"user:rng": ("between [2] and [3]", "1 64-bit word")}


def test_an_object_that_a_cell_makes_was_not_moved_by_it(ledger):
    names: dict = {}
    generators.look_into(names)
    cell(ledger, "[1]", lambda: names.update(rng=np.random.default_rng(1)), "rng = default_rng(1)")
    assert ledger.moves == {}
    cell(ledger, "[2]", lambda: names["rng"].random(), "rng.random()")
    assert told(ledger) == {"user:rng": ("[2]", "1 64-bit word")}


def test_seeding_all_does_not_seed_the_users_objects(ledger):
    rng = np.random.default_rng(1)
    generators.look_into({"rng": rng})
    cell(ledger, "[1]", lambda: (seeding.seed(4), rng.random()), "rng")
    assert ledger.moves["user:rng"].seed is None
    assert told(ledger)["user:rng"] == ("[1]", "1 64-bit word")


class Loud:
    def __getattr__(self, name: str) -> object:
        raise RuntimeError("asked")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("compared")

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("text", ["", "x", "loud.x (", "\0", "1 " * 10, "größe", "x" * 10_000])
def test_any_text_and_any_variable_is_borne(ledger, text):
    generators.look_into({"loud": Loud(), "x": None, "größe": Loud()})
    cell(ledger, "[1]", random.random, text)
    assert told(ledger) == {"python": ("[1]", "2 words")}


def test_of_objects_that_are_gone_a_thousand_are_remembered(ledger):
    cell(ledger, "[0]", random.random)
    for number in range(5):
        rngs = [np.random.PCG64(i) for i in range(290)]
        generators.look_into({f"rngs{number}": rngs})
        cell(ledger, f"[{number}]", lambda: [r.random_raw() for r in rngs], f"rngs{number}")  # noqa: B023
    objects = [name for name in ledger.moves if name.startswith("user:")]
    assert len(objects) == 1000
    assert objects[-1] == "user:rngs4[289]"
    assert ledger.moves["python"].by == "[0]"


def test_to_look_moves_no_generator(ledger):
    rng = np.random.default_rng(1)
    generators.look_into({"rng": rng})
    before = random.getstate(), np.random.get_state()[1].tolist(), rng.bit_generator.state
    cell(ledger, "[1]", text="rng")
    ledger.moves_now(["python", "user:rng"])
    assert before == (random.getstate(), np.random.get_state()[1].tolist(), rng.bit_generator.state)


# -- a move ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kinds", "said"),
    [
        ({"seed": 0}, "seeded with 0"),
        ({"seed": 3, "known": Draws("drawn", 5)}, "seeded with 3"),
        ({"known": Draws("drawn", 1)}, "1 word"),
        ({"known": Draws("re-seeded")}, "re-seeded"),
        ({}, "moved"),
    ],
)
def test_how_far_a_move_went(kinds, said):
    assert Move("[1]", b"one", b"two", **kinds).how_far("python") == said


def test_a_move_to_where_it_was_is_none():
    assert Move("[1]", b"one", b"one").how_far("python") == "nothing"


# -- names and bounds ------------------------------------------------------------------------------


def test_an_object_with_a_name_in_any_script():
    rng = np.random.default_rng(1)
    generators.look_into({"हिन्दी": rng})
    ledger = Ledger()
    ledger.enter("[1]", "हिन्दी.random()")
    rng.random()
    ledger.leave("हिन्दी.random()", {})
    assert [(n, m.by) for n, m in ledger.moves.items()] == [("user:हिन्दी", "[1]")]


def test_streams_of_the_libraries_are_known_after_a_thousand_objects():
    space = {f"r{i}": np.random.default_rng(i) for i in range(1100)}
    generators.look_into(space)
    ledger = Ledger()
    for start in range(0, 1100, 100):
        text = " ".join(f"r{i}" for i in range(start, start + 100))
        ledger.enter(f"[{start}]", text)
        for i in range(start, start + 100):
            space[f"r{i}"].random()
        ledger.leave(text, {})
    assert len(ledger.moves) == 1000
    random.random()
    ledger.enter("[end]", "")
    assert ledger.moves["python"].by == "between [1000] and [end]"
