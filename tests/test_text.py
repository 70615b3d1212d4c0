"""A cell's code and its variables, on the cell's own lines."""

from __future__ import annotations

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from nbseed.text import Text, parsed, text_of

transform = TransformerManager().transform_cell
BODY = "y = x + 1\nz = y\nprint(z)\n"


def of(cell: str, body: str, tracked: tuple[str, ...] = ()) -> Text:
    return text_of(cell, body, parsed(body, transform), transform, ["all", "there"], tracked)


def test_names_are_told_by_what_the_code_does_with_them() -> None:
    text = of(BODY, BODY, ("y",))
    assert (text.body, text.source, text.tracked) == (BODY, BODY, ("y",))
    assert set(text.reads) == {"x", "print"}
    assert set(text.uses) == {"x", "y", "z", "print"}
    assert set(text.assigns) == {"y", "z"}


def test_the_source_stands_on_the_lines_of_the_whole_cell() -> None:
    text = of(f"\n%%rngcheckpoint train\n{BODY}", BODY)
    assert text.source == f"\n\n{BODY}"


def test_magics_in_the_body_become_python() -> None:
    assert of("%time 1\n", "%time 1\n").source == "get_ipython().run_line_magic('time', '1')\n"


@pytest.mark.parametrize("body", ["x = (", "x = '\0'", "x = " + "(" * 5000 + ")" * 5000])
def test_what_is_no_python_has_no_names(body: str) -> None:
    assert parsed(body, transform) is None
    assert of(body, body, ("x",)) == Text(body, tracked=("x",))


def test_a_script_that_runs_in_the_notebook_may_read_and_use_everything() -> None:
    text = of("%run -i train.py\n", "%run -i train.py\n")
    assert (text.reads, text.uses, text.assigns) == (("all", "there"), ("all", "there"), ())
