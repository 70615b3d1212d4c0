"""Which parts of outputs count: text exactly, pictures by pixels, volatile parts by rules."""

from __future__ import annotations

import base64
import io
from typing import Any

import pytest
from PIL import Image, PngImagePlugin

from nbseed.report import MIME
from nbseed.verify import outputs
from nbseed.verify.outputs import Compared, Part, as_left, compare, parts


def printed(text: str, name: str = "stdout") -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": text}


def shown(**data: Any) -> dict[str, Any]:
    kinds = {
        "plain": "text/plain", "html": "text/html", "png": "image/png", "json": "application/json",
    }  # fmt: skip
    return {
        "output_type": "display_data",
        "metadata": {},
        "data": {kinds.get(name, name): value for name, value in data.items()},
    }


def picture(colour: tuple[int, int, int] = (9, 9, 9), size: int = 4, note: str = "") -> str:
    image = Image.new("RGB", (size, size), colour)
    data, info = io.BytesIO(), PngImagePlugin.PngInfo()
    info.add_text("Software", note)
    image.save(data, "PNG", pnginfo=info)
    return base64.b64encode(data.getvalue()).decode()


def text_pair(first: str, second: str) -> Compared:
    return compare([printed(first)], [printed(second)])


# -- text ------------------------------------------------------------------------------------------


def test_equal_outputs_are_equal() -> None:
    both = [printed("a"), shown(plain="1", html="<b>1</b>", png=picture())]
    assert compare(both, both) == Compared()


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ("a\nb\nc", "a\nB\nc", "printed text, line 2: 'b', then 'B'"),
        ("loss 0.51", "loss 0.52", "printed text, line 1: 'loss 0.51', then 'loss 0.52'"),
        ("a", "a\nb", "printed text, line 2: '', then 'b'"),
        ("a", "a\n", "printed text, its end"),
        ("a b", "a  b", "printed text, line 1: 'a b', then 'a  b'"),
        (
            "x" * 100 + "1" + "y" * 100,
            "x" * 100 + "2" + "y" * 100,
            f"printed text, line 1: '…{'x' * 20}1{'y' * 39}…', then '…{'x' * 20}2{'y' * 39}…'",
        ),
    ],
)
def test_text_counts_exactly(first: str, second: str, said: str) -> None:
    assert [p.said for p in text_pair(first, second).parted] == [said]


VOLATILE = [
    ("<object object at 0x7f1e2a3b4c50>", "<object object at 0x7f0011223344>", "addresses"),
    ("/tmp/ipykernel_12/345.py:3: Warn", "/tmp/ipykernel_99/1.py:3: Warn",
     "process numbers in file names"),
    ("/tmp/tmpabcd12_3/x", "/tmp/tmpzzzz9999/x", "random names of temporary files"),
    ("id 123e4567-e89b-12d3-a456-426614174000", "id 00000000-e89b-12d3-a456-426614174000", "UUIDs"),
    ("<style>#T_1a2b3_row0 {}", "<style>#T_9f8e7_row0 {}", "random identifiers in HTML and SVG"),
    ("#sk-container-id-1 {", "#sk-container-id-7 {", "random identifiers in HTML and SVG"),
    ('<use href="#m0123456789"', '<use href="#mabcdef0123"', "random identifiers in HTML and SVG"),
    ("CPU times: user 3.1 ms, sys: 1 µs, total: 3 ms\nWall time: 3.2 ms",
     "CPU times: user 9 ms, sys: 2 µs, total: 9 ms\nWall time: 9.2 ms",
     "timings of %time and %timeit"),
    ("1.2 µs ± 3 ns per loop (mean ± std. dev. of 7 runs, 100 loops each)",
     "1.9 ms ± 8 ns per loop (mean ± std. dev. of 7 runs, 10 loops each)",
     "timings of %time and %timeit"),
    ("100%|###| 5/5 [00:00<00:00, 19.2it/s]", "100%|###| 5/5 [00:01<00:00, 3.66s/it]",
     "rates of progress bars"),
    ("made 2026-12-01 10:11:12", "made 2026-12-02 09:08:07.123", "dates"),
    ("2026-12-01T10:11:12Z", "2027-01-01T00:00:00+01:00", "dates"),
    ("at 10:11:12", "at 09:08:07", "times of day"),
    ("took 1.5 s", "took 12 s", "durations"),
    ("step 3: 4ms/step", "step 3: 17ms/step", "durations"),
    ("in 2 minutes", "in 3 minutes", "durations"),
]  # fmt: skip


@pytest.mark.parametrize(("first", "second", "what"), VOLATILE)
def test_what_is_another_each_time_is_set_aside_and_said(
    first: str, second: str, what: str
) -> None:
    assert text_pair(first, second) == Compared(set_aside=(what,))


@pytest.mark.parametrize(("first", "second", "what"), VOLATILE)
def test_what_stands_beside_it_still_counts(first: str, second: str, what: str) -> None:
    found = text_pair(f"{first}\nloss 1.25", f"{second}\nloss 1.26")
    assert len(found.parted) == 1
    assert "loss 1.2" in found.parted[0].said


def test_every_rule_is_tried() -> None:
    assert {what for what, _, _ in outputs.VOLATILE} == {what for _, _, what in VOLATILE}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("0x1f", "0x2f"), ("accuracy 0.91", "accuracy 0.92"), ("seed 1", "seed 2"),
        ("3 samples", "4 samples"), ("v1.5s", "v1.6s"), ("[1, 2]", "[1, 3]"),
        ("epoch 10: 5", "epoch 11: 5"), ("12:30 left", "12:31 left"),
    ],
)  # fmt: skip
def test_results_are_never_taken_for_something_volatile(first: str, second: str) -> None:
    assert len(text_pair(first, second).parted) == 1


def test_streams_are_joined_however_they_came() -> None:
    pieces = [printed("a\n"), printed("b"), printed("!", "stderr"), printed("c")]
    assert parts(pieces) == [
        Part("printed text", "a\nb"), Part("text of stderr", "!"), Part("printed text", "c"),
    ]  # fmt: skip
    assert parts([{**printed(""), "text": ["a\n", "b"]}]) == [Part("printed text", "a\nb")]


@pytest.mark.parametrize(
    ("text", "left"),
    [("0%\r50%\r100%\ndone", "100%\ndone"), ("abc\rX", "Xbc"), ("a\r\nb", "a\nb"), ("a\r", "a")],
)
def test_a_progress_bar_counts_as_it_was_left(text: str, left: str) -> None:
    assert as_left(text) == left


def test_errors_count_by_type_and_text_and_not_by_their_traceback() -> None:
    def error(text: str, trace: str) -> dict[str, Any]:
        return {
            "output_type": "error", "ename": "ValueError", "evalue": text, "traceback": [trace],
        }  # fmt: skip

    assert compare([error("x", "here")], [error("x", "there")]) == Compared()
    (parted,) = compare([error("x", "")], [error("\x1b[31my\x1b[0m", "")]).parted
    assert parted.said == "error, line 1: 'ValueError: x', then 'ValueError: y'"


# -- the kinds of output ---------------------------------------------------------------------------


def test_an_output_that_is_missing_or_of_another_kind_is_named() -> None:
    one, other = printed("a"), shown(png=picture())
    assert [p.said for p in compare([one], [one, other]).parted] == [
        "output 2 was nothing, then picture"
    ]
    assert [p.said for p in compare([one], [other]).parted] == [
        "output 1 was printed text, then picture"
    ]


def test_each_form_of_an_output_counts() -> None:
    found = compare([shown(plain="1", html="<b>1</b>")], [shown(plain="1", html="<b>2</b>")])
    assert [p.said for p in found.parted] == ["text/html, line 1: '<b>1</b>', then '<b>2</b>'"]
    found = compare([shown(json={"a": 1, "b": 2})], [shown(json={"b": 2, "a": 1})])
    assert found == Compared()
    found = compare([shown(json={"a": 1})], [shown(json={"a": 2})])
    assert len(found.parted) == 1


def test_execution_counts_do_not_count() -> None:
    one = {**shown(plain="1"), "output_type": "execute_result", "execution_count": 3}
    assert compare([one], [{**one, "execution_count": 9}]) == Compared()


def test_what_nbseed_shows_does_not_count() -> None:
    for first, second in (
        (shown(plain="a", **{MIME: {"version": 1}}), shown(plain="b", **{MIME: {"version": 1}})),
        (
            shown(plain="a", html='<div class="nbseed-table">1</div>'),
            shown(plain="b", html='<div class="nbseed-table">2</div>'),
        ),
    ):
        assert compare([first], [second]) == Compared()


def test_widgets_are_said_to_be_left_out() -> None:
    def widget(model: str) -> dict[str, Any]:
        return shown(plain="x", **{"application/vnd.jupyter.widget-view+json": {"model_id": model}})

    assert compare([widget("a")], [widget("b")]) == Compared(not_compared=("widgets",))


# -- pictures --------------------------------------------------------------------------------------


def test_pictures_count_by_their_pixels() -> None:
    first, second = shown(png=picture(note="Matplotlib 3.9")), shown(png=picture(note="3.10"))
    assert first != second
    assert compare([first], [second]) == Compared()
    (parted,) = compare([first], [shown(png=picture((9, 9, 8)))]).parted
    assert parted.said == "picture: 16 of 16 pixels differ"
    assert parted.pictures is not None
    assert all(data.startswith(b"\x89PNG") for data in parted.pictures)
    (parted,) = compare([first], [shown(png=picture(size=5))]).parted
    assert parted.said == "picture: 4 x 4 pixels, then 5 x 5"


def test_pictures_that_cannot_be_read_count_by_their_bytes() -> None:
    def broken(data: bytes) -> dict[str, Any]:
        return shown(png=base64.b64encode(data).decode())

    assert compare([broken(b"no")], [broken(b"no")]) == Compared()
    (parted,) = compare([broken(b"no")], [broken(b"yes")]).parted
    assert parted.said == "picture: other bytes, and no picture that can be read"
