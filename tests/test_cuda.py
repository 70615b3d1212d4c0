"""On a real CUDA device; skipped where there is none. One command: ``python -m pytest -m cuda``."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest
import torch

import nbseed

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]

DRAWS = {
    "rand": lambda: torch.rand(1000, device="cuda"),
    "randn": lambda: torch.randn(1001, device="cuda"),
    "randperm": lambda: torch.randperm(1000, device="cuda"),
    "bernoulli": lambda: torch.full((1000,), 0.3, device="cuda").bernoulli(),
    "dropout": lambda: torch.nn.functional.dropout(torch.ones(1000, device="cuda")),
}


@pytest.mark.parametrize("kind", sorted(DRAWS))
def test_a_restore_repeats_every_kind_of_draw(kind: str) -> None:
    torch.rand(3, device="cuda")
    before = nbseed.snapshot()
    first = DRAWS[kind]()
    nbseed.restore(before)
    assert torch.equal(first, DRAWS[kind]())
    assert "torch.cuda:0" in before.states
    assert len(before.states["torch.cuda:0"]) == 16


def test_a_seed_is_the_idiom_bit_for_bit() -> None:
    torch.manual_seed(3)
    expected = torch.randn(100, device="cuda")
    nbseed.seed(3)
    assert torch.equal(expected, torch.randn(100, device="cuda"))


def test_a_convolutional_training_step_repeats_bit_for_bit() -> None:
    def step() -> torch.Tensor:
        net = torch.nn.Sequential(
            torch.nn.Conv2d(1, 8, 3), torch.nn.ReLU(), torch.nn.Dropout(), torch.nn.Flatten(),
            torch.nn.Linear(8 * 6 * 6, 10),
        ).cuda()  # fmt: skip
        images = torch.randn(16, 1, 8, 8, device="cuda")
        loss = net(images).logsumexp(1).sum()
        loss.backward()
        return torch.cat([p.grad.flatten() for p in net.parameters()])

    nbseed.seed(3, deterministic=True)
    before = nbseed.snapshot()
    first = step()
    nbseed.restore(before)
    assert torch.equal(first, step())


LATE = """
    import torch, nbseed
    {prepare}
    before = nbseed.snapshot()
    nbseed.fingerprints()
    assert not torch.cuda.is_initialized(), "looking has started CUDA"
    first = torch.randn(5, device="cuda")
    nbseed.restore(before)
    assert torch.equal(first, torch.randn(5, device="cuda"))
    after = nbseed.snapshot()
    assert "torch.cuda:0" in after.states
"""


@pytest.mark.parametrize(
    "prepare",
    [
        "",
        "nbseed.seed(3)",
        "torch.manual_seed(5)",
        "torch.manual_seed(5); torch.cuda.manual_seed(6)",
    ],
)
def test_a_snapshot_before_the_start_rewinds_what_comes_after(prepare: str) -> None:
    code = textwrap.dedent(LATE).format(prepare=prepare)
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


def test_live_states_are_restored_into_a_process_where_cuda_has_not_started() -> None:
    torch.manual_seed(7)
    torch.rand(5, device="cuda")
    state = nbseed.snapshot().states["torch.cuda:0"]
    expected = torch.randn(5, device="cuda").tolist()
    code = f"""
    import torch, nbseed
    torch.manual_seed(1)
    part = nbseed.Snapshot({{"torch.cuda:0": bytes.fromhex({state.hex()!r})}})
    nbseed.restore(part, strict=False)
    assert not torch.cuda.is_initialized()
    assert torch.randn(5, device="cuda").tolist() == {expected!r}
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, timeout=300)


def test_losses_on_the_device_are_recorded_exactly() -> None:
    from nbseed import losses

    recorder = losses.Recorder()
    losses.begin(recorder)
    expected = []
    try:
        weight = torch.randn(3, device="cuda", requires_grad=True)
        for _ in range(2000):
            loss = (weight * torch.randn(3, device="cuda")).sum()
            loss.backward()
            expected.append(loss.detach().clone())
    finally:
        losses.end(recorder)
    assert recorder.series["loss"].values().tolist() == torch.stack(expected).double().tolist()
