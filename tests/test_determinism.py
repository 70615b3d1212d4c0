"""The deterministic switches: set, said, read, and put back to what they were."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from standin import Devices

import nbseed
from nbseed import determinism

COST = "deterministic kernels can be slower, and operations without one raise an error"
LATE_HASH = (
    "PYTHONHASHSEED comes too late: set it to 0 before Python starts, or sort what comes out of "
    "sets of text"
)
LATE_CUDA = (
    "CUBLAS_WORKSPACE_CONFIG comes too late, CUDA has started: restart the kernel and run this "
    "first, or set it to :4096:8 before Python starts"
)


@pytest.fixture(autouse=True)
def torch_as_found(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Ordinary switches before and after each test."""
    before = read()
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    yield
    nbseed.seeding.forget()
    monkeypatch.undo()
    assert read() == before


def read() -> dict[str, object]:
    return {
        "algorithms": torch.are_deterministic_algorithms_enabled(),
        "warn only": torch.is_deterministic_algorithms_warn_only_enabled(),
        "deterministic": torch.backends.cudnn.deterministic,
        "benchmark": torch.backends.cudnn.benchmark,
        "matmul": torch.backends.cuda.matmul.allow_tf32,
        "cudnn": torch.backends.cudnn.allow_tf32,
        "workspace": os.environ.get("CUBLAS_WORKSPACE_CONFIG"),
    }


ON = {
    "algorithms": True,
    "warn only": False,
    "deterministic": True,
    "benchmark": False,
    "matmul": False,
    "cudnn": False,
    "workspace": ":4096:8",
}


def test_the_switches_are_set_and_put_back_by_the_next_seed_without_them() -> None:
    before = read()
    nbseed.seed(3, deterministic=True)
    assert read() == ON
    seeded = nbseed.seed(3)
    assert read() == before
    assert seeded.switches == ("the deterministic switches are put back to what they were",)
    assert nbseed.seed(3).switches == ()


def test_the_switches_are_put_back_when_the_extension_goes() -> None:
    before = read()
    nbseed.seed(3, deterministic=True)
    nbseed.seeding.forget()
    assert read() == before


def test_asking_twice_still_puts_back_what_was_there_first() -> None:
    before = read()
    nbseed.seed(3, deterministic=True)
    nbseed.seed(4, deterministic=True)
    assert read() == ON
    nbseed.seed(5)
    assert read() == before


@pytest.mark.parametrize("switch", ["benchmark", "deterministic"])
def test_what_the_user_had_set_comes_back(switch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cudnn, switch, True)
    nbseed.seed(3, deterministic=True)
    nbseed.seed(3)
    assert getattr(torch.backends.cudnn, switch) is True


def test_a_warn_only_setting_comes_back() -> None:
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        nbseed.seed(3, deterministic=True)
        assert read() == ON
        nbseed.seed(3)
        assert read()["warn only"] is True
        assert read()["algorithms"] is True
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("value", [":16:8", ":4096:8"])
def test_a_workspace_that_repeats_already_is_left_alone(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", value)
    nbseed.seed(3, deterministic=True)
    assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == value
    nbseed.seed(3)
    assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == value


def test_another_workspace_is_replaced_and_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":8:1")
    nbseed.seed(3, deterministic=True)
    assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
    nbseed.seed(3)
    assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":8:1"


SAID = [
    (None, False, (COST, LATE_HASH)),
    ("random", False, (COST, LATE_HASH)),
    ("0", False, (COST,)),
    ("0", True, (LATE_CUDA, COST)),
    (None, True, (LATE_CUDA, COST, LATE_HASH)),
]


@pytest.mark.parametrize(("hashseed", "started", "said"), SAID)
def test_what_it_costs_and_what_came_too_late_is_said(
    hashseed: str | None, started: bool, said: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    if hashseed is not None:
        monkeypatch.setenv("PYTHONHASHSEED", hashseed)
    devices = Devices()
    if started:
        devices.init()
    monkeypatch.setattr(torch, "cuda", devices)
    assert nbseed.seed(3, deterministic=True).switches == said
    assert devices.starts == int(started)
    assert ("CUBLAS_WORKSPACE_CONFIG" in os.environ) is not started


def test_a_bad_seed_sets_no_switch() -> None:
    before = read()
    with pytest.raises(nbseed.NbseedError):
        nbseed.seed(-1, deterministic=True)
    assert read() == before


def test_an_operation_without_a_deterministic_kernel_says_so() -> None:
    nbseed.seed(3, deterministic=True)
    with pytest.raises(RuntimeError, match="deterministic"):
        torch.ones(3).put_(torch.tensor([0]), torch.tensor([1.0]), accumulate=False)


# -- read as data ----------------------------------------------------------------------------------


def test_the_switches_are_plain_data() -> None:
    found = determinism.switches()
    assert found["python"] == platform.python_version()
    assert found["numpy version"] == np.__version__
    assert found["torch version"] == torch.__version__
    assert found["PYTHONHASHSEED"] is None
    assert found["CUBLAS_WORKSPACE_CONFIG"] is None
    assert found["threads"] == torch.get_num_threads()
    assert found["default dtype"] == "torch.float32"
    assert found["matmul precision"] == "highest"
    assert {type(value) for value in found.values()} <= {str, int, bool, type(None)}
    assert found == determinism.switches()


CHANGES: list[tuple[str, Any, Any]] = [
    ("deterministic algorithms", False, True),
    ("cudnn.deterministic", False, True),
    ("cudnn.allow_tf32", True, False),
    ("CUBLAS_WORKSPACE_CONFIG", None, ":4096:8"),
]


@pytest.mark.parametrize(("name", "off", "on"), CHANGES)
def test_a_switch_that_was_set_is_read(name: str, off: object, on: object) -> None:
    assert determinism.switches()[name] == off
    nbseed.seed(3, deterministic=True)
    assert determinism.switches()[name] == on


def test_reading_the_switches_starts_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    devices = Devices()
    monkeypatch.setattr(torch, "cuda", devices)
    determinism.switches()
    assert devices.starts == 0
