"""Loss values come out exactly as they were computed, and the user's calls are as before."""

from __future__ import annotations

import copy
import inspect
import math
import pickle
import subprocess
import sys
import textwrap
import traceback
import warnings
import weakref
from contextlib import contextmanager

import numpy as np
import pytest
import torch

from nbseed import losses
from nbseed.losses import Recorder, Series

BACKWARD, SCALE = vars(torch.Tensor)["backward"], vars(torch.amp.GradScaler)["scale"]


@contextmanager
def recording(*tracked):
    recorder = Recorder(tracked)
    losses.begin(recorder)
    try:
        yield recorder
    finally:
        losses.end(recorder)


@pytest.fixture(autouse=True)
def torch_is_as_before():
    yield
    assert vars(torch.Tensor)["backward"] is BACKWARD
    assert vars(torch.amp.GradScaler)["scale"] is SCALE


def leaf(value=1.0, dtype=torch.float32, **kinds):
    return torch.tensor(value, dtype=dtype, requires_grad=True, **kinds)


def values(recorder, name="loss"):
    return recorder.series[name].values().tolist()


# -- backward() ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (torch.float64, 0.1),
        (torch.float32, 0.100000001490116119384765625),
        (torch.float16, 0.0999755859375),
        (torch.bfloat16, 0.10009765625),
    ],
)
def test_a_loss_is_recorded_as_the_exact_float64(dtype, value):
    with recording() as recorder:
        (leaf(0.1, dtype) * 1).backward()
    found = recorder.series["loss"].values()
    assert (found.typecode, found.tolist()) == ("d", [value])


@pytest.mark.parametrize("value", [math.inf, -math.inf, -0.0, 1e-45, 2.0**127])
def test_values_at_the_edges_of_the_numbers_are_kept(value):
    with recording() as recorder:
        (leaf(value) * 1).backward()
    (found,) = values(recorder)
    assert (found, math.copysign(1, found)) == (torch.tensor(value).item(), math.copysign(1, value))


def test_nan_is_a_loss_too():
    with recording() as recorder:
        (leaf(math.nan) * 1).backward()
    assert math.isnan(values(recorder)[0])


@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1)])
def test_a_tensor_of_one_element_is_a_loss(shape):
    with recording() as recorder:
        torch.full(shape, 2.0, requires_grad=True).mul(3).backward()
    assert values(recorder) == [6.0]


def test_a_tensor_of_several_elements_is_none():
    weights = leaf([1.0, 2.0])
    with recording() as recorder:
        (weights * 2).backward(torch.ones(2))
    assert recorder.series == {}
    assert weights.grad.tolist() == [2.0, 2.0]


def test_the_value_is_that_of_the_call_whatever_is_done_to_the_loss_later():
    with recording() as recorder:
        loss = leaf(3.0) * 1
        loss.backward()
        loss.detach_().fill_(7)
    assert values(recorder) == [3.0]


def test_a_loss_on_an_array_of_several_steps_is_kept_in_order():
    weights = torch.zeros(3, requires_grad=True)
    kept = []
    with recording() as recorder:
        for step in range(50):
            loss = ((weights - step / 7) ** 2).mean()
            loss.backward()
            kept.append(loss.item())
    assert values(recorder) == kept


def test_several_losses_a_step_and_accumulated_ones_are_one_value_a_call():
    weights = leaf(1.0)
    with recording() as recorder:
        for part in (1, 2, 3, 4):
            (weights * part / 4).backward()
        (weights * 5).backward()
        (weights * 6).backward()
    assert values(recorder) == [0.25, 0.5, 0.75, 1.0, 5.0, 6.0]
    assert weights.grad.item() == 13.5


def test_all_arguments_of_backward_pass():
    weights, other = leaf(3.0), leaf(2.0)
    with recording() as recorder:
        loss = weights**2 * other
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a reference cycle, which is cut below
            loss.backward(torch.tensor(2.0), True, create_graph=True, inputs=[weights])
        assert (weights.grad.item(), other.grad) == (24.0, None)
        weights.grad.backward()
        weights.grad = None
        loss.backward(retain_graph=True)
        loss.backward(gradient=None)
    assert values(recorder) == [18.0, 24.0, 18.0, 18.0]
    assert weights.grad.item() == 24.0
    with recording(), pytest.raises(TypeError, match="unexpected keyword argument 'wrong'"):
        loss.backward(wrong=1)


def outcome_of(call):
    try:
        return call()
    except Exception as error:
        return type(error), str(error), error.__cause__, error.__context__


def twice(loss):
    loss.backward()
    loss.backward()


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.tensor(1.0).backward(),
        lambda: (leaf([1.0, 2.0]) * 1).backward(),
        lambda: (leaf(1.0) * 1).backward(torch.ones(3)),
        lambda: twice(leaf(2.0) ** 2),
        lambda: (leaf(1.0) * 1).backward(1, 2, 3, 4, 5, 6),
    ],
)
def test_an_error_of_backward_is_the_one_it_was(call):
    plain = outcome_of(call)
    assert plain is not None
    with recording():
        assert outcome_of(call) == plain


def test_the_very_exception_of_a_hook_comes_through():
    error = KeyError("mine")

    def hook(_):
        raise error

    weights = leaf(1.0)
    weights.register_hook(hook)
    with recording() as recorder, pytest.raises(KeyError) as caught:
        (weights * 1).backward()
    assert caught.value is error
    assert [f.name for f in traceback.extract_tb(caught.tb)][1:3] == ["backward", "backward"]
    assert values(recorder) == [1.0]
    with recording() as recorder:
        (leaf(2.0) * 1).backward()
    assert values(recorder) == [2.0]


def test_a_backward_within_a_backward_is_one_more_loss():
    weights, inner = leaf(1.0), leaf(5.0)

    def hook(_):
        with torch.enable_grad():
            (inner * 1).backward()

    weights.register_hook(hook)
    with recording() as recorder:
        (weights * 3).backward()
    assert values(recorder) == [3.0, 5.0]


def test_the_method_looks_as_before():
    plain = inspect.signature(torch.Tensor.backward), torch.Tensor.backward.__doc__
    with recording():
        patched = torch.Tensor.backward
        assert (inspect.signature(patched), patched.__doc__) == plain
        assert patched.__qualname__ == "Tensor.backward"
        assert pickle.loads(pickle.dumps(patched)) is patched
        assert copy.deepcopy(patched) is patched
        assert inspect.unwrap(patched) is BACKWARD


class Marked(torch.Tensor):
    """A subclass, as fastai and torchvision have them."""


def test_a_subclass_of_tensor_is_recorded_once():
    with recording() as recorder:
        for step in (1, 2):
            (leaf(1.0).as_subclass(Marked) * step).backward()
    assert values(recorder) == [1.0, 2.0]


def test_a_lossless_run_records_nothing():
    with recording() as recorder:
        leaf(1.0) * 1
    assert (recorder.series, recorder.notes()) == ({}, [])


def test_a_loss_that_cannot_be_read_is_one_warning_and_backward_goes_on(monkeypatch):
    weights = leaf(1.0)

    def broken(self, name, value):
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(Recorder, "add", broken)
    with recording(), pytest.warns(RuntimeWarning) as said:
        (weights * 2).backward()
    assert [str(w.message) for w in said] == [
        "nbseed: a loss was not recorded (ZeroDivisionError: oh)"
    ]
    assert said[0].filename == __file__
    assert weights.grad.item() == 2.0


# -- patches ---------------------------------------------------------------------------------------


def test_nested_runs_each_record_and_the_last_one_to_end_takes_the_patch_away():
    with recording() as outer:
        (leaf(1.0) * 1).backward()
        with recording() as inner:
            (leaf(2.0) * 1).backward()
        assert vars(torch.Tensor)["backward"] is not BACKWARD
        (leaf(3.0) * 1).backward()
    assert vars(torch.Tensor)["backward"] is BACKWARD
    assert (values(outer), values(inner)) == ([1.0, 2.0, 3.0], [2.0])


def test_runs_that_end_in_another_order_leave_nothing():
    one, two = Recorder(), Recorder()
    losses.begin(one)
    losses.begin(two)
    losses.end(one)
    (leaf(1.0) * 1).backward()
    losses.end(two)
    losses.end(two)
    assert (one.series, values(two)) == ({}, [1.0])


def test_somebody_elses_wrapper_stays_and_no_loss_counts_twice(monkeypatch):
    seen = []
    monkeypatch.setattr(torch.Tensor, "backward", BACKWARD)  # put back at the end
    with recording() as first:
        ours = torch.Tensor.backward

        def theirs(self, *args, **kwargs):
            seen.append(self.item())
            return ours(self, *args, **kwargs)

        torch.Tensor.backward = theirs
        (leaf(1.0) * 1).backward()
    assert vars(torch.Tensor)["backward"] is theirs
    with recording() as second:
        (leaf(2.0) * 1).backward()
    assert vars(torch.Tensor)["backward"] is theirs
    (leaf(3.0) * 1).backward()
    assert (values(first), values(second), seen) == ([1.0], [2.0], [1.0, 2.0, 3.0])
    monkeypatch.undo()


def test_an_earlier_wrapper_of_somebody_elses_is_put_back(monkeypatch):
    def theirs(self, *args, **kwargs):
        return BACKWARD(self, *args, **kwargs)

    monkeypatch.setattr(torch.Tensor, "backward", theirs)
    with recording() as recorder:
        (leaf(1.0) * 1).backward()
    assert vars(torch.Tensor)["backward"] is theirs
    assert values(recorder) == [1.0]
    monkeypatch.undo()


def test_torch_that_arrives_within_a_run_is_recorded():
    code = """
        import sys
        import nbseed
        from nbseed import losses

        recorder = losses.Recorder()
        losses.begin(recorder)
        assert "torch" not in sys.modules
        losses.patch()
        import torch
        plain = torch.Tensor.backward
        losses.patch()
        (torch.tensor(0.5, requires_grad=True) * 1).backward()
        losses.end(recorder)
        assert torch.Tensor.backward is plain
        print(recorder.series["loss"].values().tolist())
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("[0.5]\n", "")


# -- GradScaler ------------------------------------------------------------------------------------


@pytest.fixture
def scaler():
    return torch.amp.GradScaler("cpu", init_scale=2.0**16)


def test_the_loss_before_the_scaler_is_recorded_exactly(scaler):
    weights = leaf(0.1)
    optimizer = torch.optim.SGD([weights], 0.1)
    kept = []
    with recording() as recorder:
        for _ in range(4):
            loss = (weights - 0.7) ** 2 / 3
            kept.append(loss.item())
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
    assert values(recorder) == kept
    assert scaler.get_scale() == 2.0**16


def test_a_value_that_the_scale_would_make_infinite_is_recorded(scaler):
    with recording() as recorder:
        scaled = scaler.scale(leaf(2.0**120) * 1)
        scaled.backward()
    assert (scaled.item(), values(recorder)) == (math.inf, [2.0**120])


@pytest.mark.parametrize(
    ("combine", "value"),
    [
        (lambda a, b: a + b, 5.0),
        (lambda a, b: (a + b) / 4, 1.25),
        (lambda a, b: torch.stack([a, b]).mean(), 2.5),
        (lambda a, b: a / 8, 0.25),
    ],
)
def test_what_is_computed_from_scaled_losses_is_divided_by_the_scale(scaler, combine, value):
    weights = leaf(1.0)
    with recording() as recorder:
        combine(scaler.scale(weights * 2), scaler.scale(weights * 3)).backward()
        (weights * 7).backward()
    assert values(recorder) == [value, 7.0]


def test_an_unscaled_loss_beside_scaled_ones_is_recorded_as_it_is(scaler):
    weights = leaf(1.0)
    with recording() as recorder:
        one, two = scaler.scale(weights * 2), weights * 3
        two.backward()
        one.backward()
        (weights * 4).backward()
    assert values(recorder) == [3.0, 2.0, 4.0]


@pytest.mark.parametrize("kind", [list, tuple])
def test_losses_that_were_scaled_together_are_each_unscaled(scaler, kind):
    weights = leaf(1.0)
    with recording() as recorder:
        one, two = scaler.scale(kind([weights * 2, weights * 3]))
        two.backward()
        one.backward()
    assert values(recorder) == [3.0, 2.0]


def test_a_scaler_that_is_off_changes_nothing():
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    loss = leaf(2.0) * 1
    with recording() as recorder:
        assert scaler.scale(loss) is loss
        loss.backward()
    assert values(recorder) == [2.0]


def test_scaled_losses_that_never_come_to_backward_are_not_kept_alive(scaler):
    weights = leaf(1.0)
    with recording():
        scaled = scaler.scale(weights * 2)
        torch.autograd.grad(scaled, weights, create_graph=True)
        gone = weakref.ref(scaled)
        del scaled
        assert gone() is None


def test_scale_gives_what_it_gave(scaler):
    loss = leaf(2.0) * 1
    plain = scaler.scale(loss)
    with recording():
        again = scaler.scale(loss)
        refused = outcome_of(lambda: scaler.scale(5))
    assert torch.equal(plain, again)
    assert type(again.grad_fn) is type(plain.grad_fn)
    assert refused == outcome_of(lambda: scaler.scale(5))


# -- numbers of other kinds ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (0.1, 0.1),
        (3, 3.0),
        (True, 1.0),
        (2**80, 2.0**80),
        (np.float32(0.1), 0.10000000149011612),
        (np.float64(0.1), 0.1),
        (np.int64(-5), -5.0),
        (np.bool_(True), 1.0),
        (np.array(0.25), 0.25),
        (np.array([[0.25]]), 0.25),
        (torch.tensor(0.1), 0.10000000149011612),
        (torch.tensor([7]), 7.0),
        (torch.tensor(True), 1.0),
        (torch.tensor(0.5, requires_grad=True), 0.5),
    ],
)
def test_track_records_numbers_of_every_kind(value, number):
    with recording() as recorder:
        assert losses.track("x", value) is None
    assert values(recorder, "x") == [number]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("1.5", "a str is not a number"),
        (None, "a NoneType is not a number"),
        ([1.0], "a list is not a number"),
        (1j, "a complex is not a number"),
        (10**400, "a int is not a number"),
        (np.array([1.0, 2.0]), "a ndarray is not a number"),
        (np.complex128(1j), "a complex128 is not a number"),
        (np.str_("1.5"), "a str_ is not a number"),
        (np.array([]), "a ndarray is not a number"),
        (torch.ones(2), "a tensor of shape (2,) is not a number"),
        (torch.ones(0), "a tensor of shape (0,) is not a number"),
        (torch.tensor(1j), "a complex tensor is not a number"),
        (torch.ones((), device="meta"), "a tensor without data is not a number"),
    ],
)
def test_what_is_not_one_number_is_refused(value, text):
    with recording() as recorder, pytest.raises(TypeError) as caught:
        losses.track("x", value)
    assert str(caught.value) == text
    assert recorder.series == {}


def test_track_outside_a_run_does_nothing():
    losses.track("x", "not even looked at")
    assert losses.passed_through("x", 5) == 5


def test_track_in_nested_runs_records_once_in_each():
    with recording("x") as outer, recording("x") as inner, recording() as other:
        losses.track("x", 1)
        losses.assigned("x", 2)
    assert values(outer, "x") == values(inner, "x") == [1.0, 2.0]
    assert values(other, "x") == [1.0]


def test_assignments_are_recorded_where_they_are_tracked_and_never_raise():
    class Broken:
        @property
        def size(self):
            raise OSError

    with recording("x") as recorder:
        for value in (1, "text", Broken(), 10**400, torch.tensor(1j), np.str_("a"), 2):
            assert losses.passed_through("x", value) is value
        assert losses.passed_through("y", 3) == 3
        assert losses.assigned("x", 4) is None
    assert values(recorder, "x") == [1.0, 2.0, 4.0]
    assert list(recorder.series) == ["x"]
    assert recorder.notes() == ["x: 5 values were not numbers and are not kept"]


def test_a_tracked_loss_is_recorded_by_its_assignments_alone():
    with recording("loss") as recorder:
        loss = losses.passed_through("loss", leaf(2.0) * 1)
        loss.backward()
    assert values(recorder) == [2.0]


@pytest.mark.parametrize(
    ("do", "notes"),
    [
        (lambda r: r.add("x", 1), []),
        (lambda r: r.skip("x"), ["x: 1 value was no number and is not kept"]),
        (
            lambda r: (r.skip("x"), r.skip("x")),
            ["x: 2 values were not numbers and are not kept"],
        ),
        (lambda r: None, ["x was never assigned"]),
    ],
)
def test_what_is_not_kept_is_said(do, notes):
    recorder = Recorder(("x",))
    do(recorder)
    assert recorder.notes() == notes


def test_the_names_of_all_running_cells_are_tracked():
    assert losses.tracked_names() == set()
    with recording("x", "y"), recording("y", "z"):
        assert losses.tracked_names() == {"x", "y", "z"}


@pytest.mark.parametrize(
    ("count", "note"),
    [
        (4, "x: 1 value beyond 3 is not kept"),
        (9, "x: 6 values beyond 3 are not kept"),
    ],
)
def test_a_bound_that_is_hit_is_said(monkeypatch, count, note):
    monkeypatch.setattr(losses, "LIMIT", 3)
    with recording() as recorder:
        for step in range(count):
            losses.track("x", step)
    assert values(recorder, "x") == [0.0, 1.0, 2.0]
    assert recorder.notes() == [note]


def test_a_bound_that_losses_hit_is_said(monkeypatch):
    monkeypatch.setattr(losses, "LIMIT", 3)
    with recording() as recorder:
        for step in range(5):
            leaf(float(step)).backward()
    assert values(recorder) == [0.0, 1.0, 2.0]
    assert recorder.notes() == ["loss: 2 values beyond 3 are not kept"]


def test_a_wrapper_of_an_earlier_run_that_somebody_kept_sees_nothing():
    with recording() as first:
        kept = torch.Tensor.backward
        kept(leaf(1.0))
    with recording() as second:
        kept(leaf(2.0))
        leaf(3.0).backward()
    kept(leaf(4.0))
    assert (values(first), values(second)) == ([1.0], [3.0])


def test_values_are_an_array_of_their_own_memory():
    series = Series()
    series.add(1)
    one, two = series.values(), series.values()
    one[0] = 7
    series.add(2)
    assert (two.tolist(), series.values().tolist()) == ([1.0], [1.0, 2.0])


# -- devices ---------------------------------------------------------------------------------------


class Remote(torch.Tensor):
    """A tensor that says it is on another device, and counts how often it is waited for."""

    waits = 0

    @property
    def device(self):
        return torch.device("cuda", 0)

    @property
    def is_cpu(self):
        return False

    def cpu(self):
        Remote.waits += 1
        return self.as_subclass(torch.Tensor)

    def item(self):
        Remote.waits += 1
        return self.as_subclass(torch.Tensor).item()


@pytest.fixture
def remote():
    Remote.waits = 0
    return lambda value, dtype=torch.float32: torch.tensor(value, dtype=dtype).as_subclass(Remote)


def test_values_on_a_device_are_read_a_batch_at_a_time(remote):
    series = Series()
    for step in range(1023):
        series.add(remote(float(step)))
    assert (Remote.waits, len(series._waiting)) == (0, 1023)
    series.add(remote(1023.0))
    assert (Remote.waits, len(series._waiting)) == (1, 0)
    for step in range(1024, 3000):
        series.add(remote(float(step)))
        assert len(series._waiting) < 1024
    assert Remote.waits == 2
    assert series.values().tolist() == [float(step) for step in range(3000)]
    assert Remote.waits == 3
    assert len(series.values()) == 3000
    assert Remote.waits == 3


def test_a_value_on_a_device_may_be_overwritten_before_it_is_read(remote):
    series, value = Series(), remote(1.0)
    series.add(value)
    value.fill_(5)
    assert series.values().tolist() == [1.0]


def test_a_value_on_a_device_does_not_hold_its_graph(remote):
    value = remote(1.0).requires_grad_() * 2
    series = Series()
    series.add(value)
    assert [(kept.grad_fn, kept.requires_grad) for kept in series._waiting] == [(None, False)]
    assert series.values().tolist() == [2.0]


@pytest.mark.parametrize(
    ("dtype", "number"),
    [(torch.float16, 0.0999755859375), (torch.bfloat16, 0.10009765625), (torch.float64, 0.1)],
)
def test_values_on_a_device_are_exact_too(remote, dtype, number):
    series = Series()
    series.add(remote(0.1, dtype))
    series.add(remote([0.1], dtype))
    assert series.values().tolist() == [number, number]


def test_values_from_several_places_keep_their_order(remote):
    series = Series()
    for value in (
        1, remote(2.0), torch.tensor(3.0), remote(4.0, torch.float64), 5.0, remote(6.0),
        np.float64(7), torch.tensor([8]),
    ):  # fmt: skip
        series.add(value)
    assert series.values().tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]


def test_losses_from_several_places_keep_their_order(remote):
    series = Series()
    for loss in (
        torch.tensor(1.0), remote(2.0), torch.tensor(3.0), torch.tensor([4.0]),
        remote(5.0, torch.float64), torch.tensor(6.0, dtype=torch.float16),
    ):  # fmt: skip
        series.add_scalar(loss)
    assert series.values().tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def test_the_bound_counts_values_that_wait(monkeypatch, remote):
    monkeypatch.setattr(losses, "LIMIT", 3)
    series = Series()
    for step in range(5):
        series.add(remote(float(step)))
    assert (series.values().tolist(), series.cut) == ([0.0, 1.0, 2.0], 2)


def test_integers_that_a_double_cannot_hold_are_refused():
    series = losses.Series()
    for value in (2**53 + 1, torch.tensor(2**60 + 1)):
        with pytest.raises(TypeError):
            series.add(value)
    series.add(2**60)
    assert series.values().tolist() == [2.0**60]
