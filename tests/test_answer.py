"""What ``%rng why`` says, line by line, and the same in HTML."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from nbseed.answer import Answer
from nbseed.run import Run
from nbseed.why import Cause, Explanation

HEAD = "train, run 2: rewound to 4f09c1d2; same draws; x differs"
BESIDE = "run 2 beside run 1: "
EVIL = """<script>alert("1")</script> & 'x'"""


def run(number):
    return Run(number, "train", 3, {}, "", "", "ok")


def explained(*causes, same=False, **kinds):
    parts = dict.fromkeys(("draws", "ruled_out", "not_compared", "known", "restart"), ())
    return Explanation(run(1), run(2), same, causes, **{**parts, **kinds})


def answer(*causes, head=HEAD, **kinds):
    return Answer(head, explained(*causes, **kinds))


LR = Cause(95, "lr is 0.2, was 0.1", ("lr (float): 0.2, was 0.1",), "`lr = 0.1`")
THREADS = Cause(49, "threads may take their draws in another order", (), "one generator a thread")


@pytest.mark.parametrize(
    ("shown", "lines"),
    [
        (answer(same=True), [f"{BESIDE}nothing differs, nothing to explain"]),
        (answer(), [f"{BESIDE}no cause was found"]),
        (
            answer(ruled_out=("seeds", "the variables it reads"), not_compared=("a (4.0 GB)",)),
            [
                f"{BESIDE}no cause was found",
                "looked at and found no cause in: seeds; the variables it reads",
                "not compared: a (4.0 GB)",
            ],
        ),
        (
            answer(LR),
            [
                f"{BESIDE}why it differs, the likeliest first",
                " 1. lr is 0.2, was 0.1",
                "      lr (float): 0.2, was 0.1",
                "    try: `lr = 0.1`",
            ],
        ),
        (
            answer(
                LR,
                THREADS,
                draws=("python drew 2 words, run 1 1 word", "numpy drew nothing, run 1 4 words"),
                known=("f re-seeds numpy once",),
                restart=(
                    "line 1: hash(x) takes its seed from hash()",
                    "line 2: the order of a set",
                ),
            ),
            [
                f"{BESIDE}why it differs, the likeliest first",
                " 1. lr is 0.2, was 0.1",
                "      lr (float): 0.2, was 0.1",
                "    try: `lr = 0.1`",
                " 2. perhaps: threads may take their draws in another order",
                "    try: one generator a thread",
                "draws: python drew 2 words, run 1 1 word; numpy drew nothing, run 1 4 words",
                "worth knowing: f re-seeds numpy once",
                "after a restart of the kernel: line 1: hash(x) takes its seed from hash()",
                "after a restart of the kernel: line 2: the order of a set",
            ],
        ),
    ],
)
def test_an_answer_is_a_verdict_causes_with_remedies_and_what_was_ruled_out(shown, lines):
    assert repr(shown).splitlines() == [HEAD, *lines]


@pytest.mark.parametrize(
    ("weight", "said"), [(100, "it"), (50, "it"), (49, "perhaps: it"), (1, "perhaps: it")]
)
def test_what_may_be_is_told_from_what_is(weight, said):
    shown = answer(Cause(weight, "it", (), "so"))
    assert repr(shown).splitlines()[2] == f" 1. {said}"
    assert f"<b>{said}</b>" in shown._repr_html_()


@pytest.mark.parametrize(
    ("count", "last"), [(6, "      5"), (7, "      and 1 more"), (300, "      and 294 more")]
)
def test_evidence_is_cut_and_the_cut_is_said(count, last):
    shown = answer(Cause(90, "it", tuple(map(str, range(count))), "so"))
    lines = repr(shown).splitlines()[3:-1]
    assert lines[:6] == [f"      {n}" for n in range(6)]
    assert lines[-1] == last
    assert len(lines) == min(count, 7)
    assert f"<div>{last.strip()}</div>" in shown._repr_html_()


# -- HTML ------------------------------------------------------------------------------------------


class Page(HTMLParser):
    """The pieces of text of a page and its tags, which must be closed in order."""

    def __init__(self, page):
        super().__init__()
        self.texts, self.tags, self.classes, self._open = [""], set(), [], []
        self.feed(page)
        self.close()
        assert self._open == []
        self.texts = [text for text in self.texts if text]

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.classes += [value for name, value in attrs if name == "class"]
        self._open.append(tag)
        if tag in ("div", "li"):
            self.texts.append("")

    def handle_endtag(self, tag):
        assert self._open.pop() == tag
        if tag in ("div", "li"):
            self.texts.append("")

    def handle_data(self, data):
        self.texts[-1] += data


def test_html_holds_the_same_as_text():
    shown = answer(LR, THREADS, draws=("d",), ruled_out=("r",), not_compared=("n",), known=("k",))
    page = Page(shown._repr_html_())
    lines = [line.strip() for line in repr(shown).splitlines()]
    words = " ".join(line.removeprefix("1. ").removeprefix("2. ") for line in lines)
    assert " ".join(page.texts) == words.replace("`", "")
    assert "<div>try: <code>lr = 0.1</code></div>" in shown._repr_html_()
    assert page.classes == ["nbseed-why"]


def test_html_without_causes_has_no_empty_list():
    assert Page(answer()._repr_html_()).tags == {"div", "b"}


@pytest.mark.parametrize(
    "shown",
    [
        answer(head=EVIL),
        answer(Cause(90, EVIL, (), "so")),
        answer(Cause(90, "it", (EVIL,), "so")),
        answer(Cause(90, "it", (), EVIL)),
        answer(draws=(EVIL,)),
        answer(ruled_out=(EVIL,)),
        answer(not_compared=(EVIL,)),
        answer(known=(EVIL,)),
        answer(restart=(EVIL,)),
    ],
)
def test_names_and_code_of_the_users_are_text_in_html(shown):
    page = shown._repr_html_()
    assert "<script" not in page
    read = Page(page)
    assert read.tags <= {"div", "b", "i", "ol", "li", "code"}
    assert any(EVIL in text for text in read.texts)
