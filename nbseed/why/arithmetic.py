"""Arithmetic, not draws: threads, precision, kernels without a fixed order, memory, the clock."""

from __future__ import annotations

from .. import signs
from ..content.record import counted
from .cause import Cause, Pair, listed, place

_REMEDIES = {
    "threads": "`torch.set_num_threads({before})`",
    "interop threads": "`torch.set_num_interop_threads({before})` before torch works",
    "default dtype": "`torch.set_default_dtype({before})`",
    "matmul precision": "`torch.set_float32_matmul_precision({before!r})`",
    "deterministic algorithms": "`torch.use_deterministic_algorithms({before})`",
    "cudnn.deterministic": "`torch.backends.cudnn.deterministic = {before}`",
    "cudnn.benchmark": "`torch.backends.cudnn.benchmark = {before}`",
    "cuda.matmul.allow_tf32": "`torch.backends.cuda.matmul.allow_tf32 = {before}`",
    "cudnn.allow_tf32": "`torch.backends.cudnn.allow_tf32 = {before}`",
    "BLAS threads": "`threadpoolctl.threadpool_limits({before})`",
}


def find(pair: Pair) -> list[Cause]:
    """Switches that differ, loops that end by the clock, memory that nobody filled, kernels."""
    return [*_switches(pair), *_clocks(pair), *_unfilled(pair), *_kernels(pair)]


def changed_switches(pair: Pair) -> dict[str, tuple[object, object]]:
    """Switches whose values differ, at the beginning or the end, by name: before and now."""
    found: dict[str, tuple[object, object]] = {}
    for before, now in (
        (pair.before.switches, pair.now.switches),
        (pair.base.switches, pair.run.switches),
    ):
        for name in before.keys() & now.keys():
            if before[name] != now[name]:
                found.setdefault(name, (before[name], now[name]))
    return found


def _switches(pair: Pair) -> list[Cause]:
    changed = changed_switches(pair)
    if not changed:
        return []
    names = sorted(changed, key=lambda name: (name not in _REMEDIES, name))
    name = names[0]
    before, now = changed[name]
    return [
        Cause(
            88,
            f"{name}: {now} now, {before} before",
            tuple(
                f"{n}: {changed[n][1]} now, {changed[n][0]} in run {pair.base.number}"
                for n in names
            ),
            "; ".join(
                _REMEDIES.get(n, f"set {n} back to {{before}}").format(before=changed[n][0])
                for n in names
            ),
        )
    ]


def _clocks(pair: Pair) -> list[Cause]:
    found = [(f, s) for f, text in pair.texts().items() for s in signs.signs(text).clocks]
    if not found:
        return []
    function, sign = found[0]
    evidence = [f"{place(s.line, f)}: {s.text}" for f, s in found]
    evidence += [
        f"{name}: {counted(now, 'step')}, run {pair.base.number} {before}"
        for name, (before, now) in pair.outcome.unequal.items()
    ]
    return [
        Cause(
            82,
            f"the clock decides how many steps run ({place(sign.line, function)})",
            tuple(evidence),
            "count steps, not seconds: `for step in range(n)`",
        )
    ]


def _unfilled(pair: Pair) -> list[Cause]:
    found = [(f, s) for f, text in pair.texts().items() for s in signs.signs(text).unfilled]
    if not found:
        return []
    return [
        Cause(
            42,
            f"memory as it was found may have been used ({place(found[0][1].line, found[0][0])})",
            tuple(f"{place(s.line, f)}: {s.text}" for f, s in found),
            "`zeros()` in place of `empty()`",
        )
    ]


def _kernels(pair: Pair) -> list[Cause]:
    """Kernels are to blame only if nothing else differs: the same draws, and other floats."""
    operators = pair.now.operators
    if operators:
        return [
            Cause(
                86,
                f"{listed(operators)} {'has' if len(operators) == 1 else 'have'} "
                "no deterministic kernel",
                tuple(f"torch names {operator}" for operator in operators),
                "`%seed 3 --deterministic`: raises an error there, or takes another kernel",
            )
        ]
    on_device = [name for name in pair.run.ends if name.startswith("torch.cuda:")]
    if pair.outcome.elsewhere or not on_device or operators is not None:
        return []
    benchmark = pair.run.switches.get("cudnn.benchmark")
    said = "cuDNN's benchmark picks kernels by their speed" if benchmark else (
        "kernels on the GPU may add in another order"
    )  # fmt: skip
    return [
        Cause(
            45 if benchmark else 25,
            said,
            (f"the draws were the same; {listed(on_device)} worked",),
            f"`%%rngcheckpoint {pair.name} --probe` names the operators; "
            "then `%seed 3 --deterministic`",
        )
    ]
