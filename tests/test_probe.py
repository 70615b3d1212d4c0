"""A run that asks torch for operators without a deterministic kernel, and leaves nothing behind."""

from __future__ import annotations

import sys
import types
import warnings
from collections.abc import Iterator

import pytest
import torch
import torch._inductor.config  # torch's first switch imports it, which adds a filter

from nbseed.probe import Probe


def state() -> tuple[object, ...]:
    return (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        torch.utils.deterministic.fill_uninitialized_memory,
        list(warnings.filters),
        warnings.showwarning,
    )


@pytest.fixture(autouse=True)
def torch_as_found() -> Iterator[None]:
    before = state()
    yield
    torch.use_deterministic_algorithms(before[0], warn_only=before[1])
    torch.utils.deterministic.fill_uninitialized_memory = before[2]
    assert state() == before


@pytest.fixture
def probe() -> Iterator[Probe]:
    made = Probe()
    yield made
    made.end()


def put():
    return torch.zeros(3).put_(torch.tensor([0]), torch.ones(1))


def test_operators_are_named_once_each_in_the_order_they_came(probe):
    probe.begin()
    put()
    pooled, where = torch.nn.functional.max_pool2d(torch.ones(1, 1, 2, 2), 2, return_indices=True)
    torch.nn.functional.max_unpool2d(pooled, where, 2)
    put()
    assert probe.end() == ("put_", "max_unpooling2d_forward_out")


def test_operators_with_a_deterministic_kernel_are_not_named(probe):
    probe.begin()
    torch.ones(3, requires_grad=True).cumsum(0).sum().backward()
    assert probe.end() == ()


def test_torch_is_asked_to_warn_and_to_leave_memory_as_it_is(probe):
    probe.begin()
    assert state()[:3] == (True, True, False)
    probe.end()


@pytest.mark.parametrize(
    ("enabled", "warn_only"), [(False, False), (True, False), (True, True), (False, True)]
)
@pytest.mark.parametrize("filling", [True, False])
def test_the_users_settings_come_back(probe, enabled, warn_only, filling):
    torch.use_deterministic_algorithms(enabled, warn_only=warn_only)
    torch.utils.deterministic.fill_uninitialized_memory = filling
    before = state()
    probe.begin()
    put()
    probe.end()
    assert state() == before


def test_the_users_settings_come_back_after_an_error(probe):
    before = state()
    probe.begin()
    with pytest.raises(RuntimeError, match="shape"):
        torch.ones(2).reshape(3)
    put()
    assert probe.end() == ("put_",)
    assert state() == before


@pytest.mark.parametrize("action", ["ignore", "error", "default", "once"])
def test_the_users_filters_neither_hide_an_operator_nor_are_changed(probe, action):
    with warnings.catch_warnings():
        warnings.simplefilter(action)
        warnings.filterwarnings(action, message="put_")
        before = state()
        probe.begin()
        put()
        put()
        assert probe.end() == ("put_",)
        assert state() == before


def test_filters_that_a_cell_adds_stay(probe):
    with warnings.catch_warnings():
        before = list(warnings.filters)
        probe.begin()
        warnings.filterwarnings("ignore", message="of the user's")
        added = warnings.filters[0]
        probe.end()
        assert list(warnings.filters) == [added, *before]


@pytest.mark.parametrize(
    "message",
    [
        "of the user's",
        "",
        "it does not have a deterministic implementation",
        "put_ has no deterministic implementation",
        "my own does not have a deterministic implementation",
    ],
)
def test_other_warnings_pass(probe, message):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        probe.begin()
        warnings.showwarning(UserWarning(message), UserWarning, "cell", 3)
        named = probe.end()
    # "it" could be an operator's name as well.
    assert named == (("it",) if message.startswith("it ") else ())
    assert [str(w.message) for w in caught] == ([] if named else [message])


def test_what_torch_says_in_a_recording_of_the_users_own_stays_there(probe):
    probe.begin()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        put()
    assert [str(w.message).split(" ", 1)[0] for w in caught] == ["put_"]
    assert probe.end() == ()


def test_a_function_that_somebody_has_put_there_since_is_left_to_them(probe):
    before = warnings.showwarning
    probe.begin()

    def theirs(*args, **kwargs):
        raise AssertionError

    warnings.showwarning = theirs
    probe.end()
    left, warnings.showwarning = warnings.showwarning, before
    assert left is theirs


def test_a_function_that_somebody_has_kept_passes_everything_on_afterwards(probe):
    probe.begin()
    kept = warnings.showwarning  # as logging.captureWarnings does
    probe.end()
    named = UserWarning("put_ does not have a deterministic implementation")
    with warnings.catch_warnings(record=True) as caught:
        probe._show = warnings.showwarning
        kept(named, UserWarning, "cell", 3)
    assert [w.message for w in caught] == [named]
    assert list(probe.operators) == []


def test_a_second_probe_begins_anew(probe):
    probe.begin()
    put()
    probe.end()
    again = Probe()
    again.begin()
    assert again.end() == ()


def test_an_end_without_a_beginning_does_nothing(probe):
    before = state()
    assert probe.end() is None
    assert state() == before
    probe.begin()
    assert probe.end() == ()
    assert probe.end() is None
    assert state() == before


def test_torch_is_not_imported_for_it(probe, monkeypatch):
    before = state()
    monkeypatch.delitem(sys.modules, "torch")
    probe.begin()
    assert "torch" not in sys.modules
    assert (warnings.showwarning, list(warnings.filters)) == (before[4], before[3])
    monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))  # the cell imports it
    assert probe.end() is None
