"""What a rewind of generators does not reach: other processes, live iterators, recorded kernels."""

from __future__ import annotations

import itertools
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_ITEMS = 50  # of a list or dictionary

PERSISTENT = "persistent workers"
POOL = "worker processes"
ITERATOR = "a live iterator"
COMPILED = "compiled code"
GRAPH = "a CUDA graph"
GRADIENTS = "gradients of an earlier run"


def unreached(namespace: Mapping[str, Any], names: Iterable[str]) -> dict[str, str]:
    """What kind of thing each variable, or an attribute or item of it, is; by the path to it.

    Only what keeps random state, or a position in one, out of every snapshot's sight.
    """
    found = {}
    for name in names:
        for path, value in _near(name, namespace.get(name)):
            kind = _kind(value)
            if kind:
                found[path] = kind
    return found


def processes_alive() -> tuple[str, ...]:
    """The names of this process's worker processes that live now."""
    multiprocessing = sys.modules.get("multiprocessing.process")
    if multiprocessing is None:
        return ()
    return tuple(sorted(p.name for p in multiprocessing.active_children()))


def _near(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    yield name, value
    kind = type(value)
    if issubclass(kind, (list, tuple)):
        plain = list if issubclass(kind, list) else tuple  # past the user's own __getitem__
        for index, item in enumerate(plain.__getitem__(value, slice(_ITEMS))):
            yield f"{name}[{index}]", item
    elif issubclass(kind, dict):
        for key, item in list(dict.items(value))[:_ITEMS]:
            yield f"{name}[{key!r}]" if type(key) in (str, int, bool) else name, item
    elif str(kind.__module__).partition(".")[0] not in ("builtins", "numpy", "pandas"):
        try:
            held = object.__getattribute__(value, "__dict__")
        except Exception:  # none, or a property of the user's that fails
            return
        if isinstance(held, dict):
            for key, item in list(held.items())[:_ITEMS]:
                yield f"{name}.{key}", item


def _kind(value: Any) -> str:
    kind = type(value)
    if issubclass(kind, (types.GeneratorType, types.AsyncGeneratorType)):
        return ITERATOR
    mro = {f"{base.__module__}.{base.__qualname__}" for base in kind.__mro__}
    if "torch.utils.data.dataloader.DataLoader" in mro:
        held = vars(value)
        return PERSISTENT if held.get("_iterator") is not None else ""
    if "torch.utils.data.dataloader._BaseDataLoaderIter" in mro:
        return ITERATOR
    if not mro.isdisjoint({
        "concurrent.futures.process.ProcessPoolExecutor", "multiprocessing.pool.Pool",
        "joblib.externals.loky.process_executor.ProcessPoolExecutor", "joblib.parallel.Parallel",
        "multiprocessing.process.BaseProcess", "dask.distributed.Client",
    }):  # fmt: skip
        return "" if "multiprocessing.pool.ThreadPool" in mro else POOL
    if "torch.Tensor" in mro:
        with sys.modules["torch"]._C.DisableTorchFunctionSubclass():  # past what users override
            return GRADIENTS if value.is_leaf and value.grad is not None else ""
    if "torch.nn.modules.module.Module" in mro and "_parameters" in vars(value):
        held = itertools.islice(sys.modules["torch"].nn.Module.named_parameters(value), 3)
        return GRADIENTS if any(p.grad is not None for _, p in held) else ""
    if "torch.cuda.graphs.CUDAGraph" in mro:
        return GRAPH
    if "torch._dynamo.eval_frame.OptimizedModule" in mro or (
        issubclass(kind, types.FunctionType) and "_torchdynamo_orig_callable" in vars(value)
    ):
        return COMPILED
    return ""
