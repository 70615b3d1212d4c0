"""Each test leaves every generator, the seed in force and torch's methods as it found them."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Generator, Iterator

import pytest

from nbseed import generators, losses, seeding, watch
from nbseed.checkpoints import CHECKPOINTS


@pytest.fixture(autouse=True)
def as_found() -> Iterator[None]:
    """Put the plain states back by the libraries' own calls, not by what is under test."""
    python = random.getstate()
    numpy = sys.modules.get("numpy")
    words = numpy.random.get_state(legacy=False) if numpy else None
    torch = sys.modules.get("torch")
    cpu = torch.get_rng_state() if torch else None
    yield
    random.setstate(python)
    if words is not None:
        numpy.random.set_bit_generator(getattr(numpy.random, words["bit_generator"])(0))
        numpy.random.set_state(words)
    if cpu is not None:
        torch.set_rng_state(cpu)
    assert not losses._recorders, "a run was left open"
    assert not watch._watches, "a watch was left open"
    assert not losses._patches, "backward() was left patched"
    assert not watch._patches, "a watched call was left patched"
    for name in list(generators.registered()):
        generators.unregister(name)
    generators.look_into(None)
    CHECKPOINTS.clear()
    seeding.forget()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """On the build machine a skipped test is a failed one, unless it needs a CUDA device."""
    report = yield
    if report.skipped and os.environ.get("CI") and item.get_closest_marker("cuda") is None:
        report.outcome = "failed"
        report.longrepr = f"skipped, which is not allowed here: {report.longrepr}"
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Fast tests first, real kernels then, and last what stays once it is imported.

    numba's streams would be among everybody's generators, and JAX's threads make a fork unsafe.
    """

    def rank(item: pytest.Item) -> tuple[bool, bool]:
        stays = any(name in item.nodeid for name in ("numba", "jax"))
        return stays, item.get_closest_marker("kernel") is not None

    items.sort(key=rank)
