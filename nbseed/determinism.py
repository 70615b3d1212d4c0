"""The switches that are not generators: read them, set them for repeatable arithmetic, put back."""

from __future__ import annotations

import os
import platform
import sys
from typing import Any

from .imports import is_imported

_ENVIRONMENT = "CUBLAS_WORKSPACE_CONFIG"
_REPEATABLE = (":4096:8", ":16:8")
_VERSIONS = ("numpy", "torch", "scipy", "sklearn", "pandas", "jax", "tensorflow", "numba")

_wanted = False
_before: dict[str, Any] | None = None
_environment_before: tuple[str | None] | None = None


def switches() -> dict[str, str | int | bool | None]:
    """The switches under which code runs now, by name; plain values that compare with ``==``.

    Only libraries that are imported are asked, and nothing is started.
    """
    found: dict[str, str | int | bool | None] = {
        "python": platform.python_version(),
        "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED"),
        _ENVIRONMENT: os.environ.get(_ENVIRONMENT),
    }
    for name in _VERSIONS:
        if is_imported(name):
            found[f"{name} version"] = str(getattr(sys.modules[name], "__version__", "unknown"))
    if is_imported("sklearn"):
        found["scikit-learn's config"] = str(sys.modules["sklearn"].get_config())
    if is_imported("torch"):
        found.update(_torch_switches(sys.modules["torch"]))
    return found


def _torch_switches(torch: Any) -> dict[str, str | int | bool | None]:
    cudnn = torch.backends.cudnn
    return {
        "threads": torch.get_num_threads(),
        "default dtype": str(torch.get_default_dtype()),
        "default device": str(torch.get_default_device()),
        "gradients": torch.is_grad_enabled(),
        "autocast": torch.is_autocast_enabled("cpu") or _autocast_cuda(torch),
        "mkldnn": _asked(lambda: torch.backends.mkldnn.enabled),
        "deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
        "warn only": torch.is_deterministic_algorithms_warn_only_enabled(),
        "cudnn.deterministic": cudnn.deterministic,
        "cudnn.benchmark": cudnn.benchmark,
        "matmul precision": _asked(torch.get_float32_matmul_precision),
        "cuda.matmul.allow_tf32": _asked(lambda: torch.backends.cuda.matmul.allow_tf32),
        "cudnn.allow_tf32": _asked(lambda: cudnn.allow_tf32),
    }


def _autocast_cuda(torch: Any) -> bool:
    """Asked of the flag alone: nothing is started."""
    return bool(torch.is_autocast_enabled("cuda"))


def _asked(question: Any) -> Any:
    """Torch refuses an old TF32 switch once a new one was used; that is an answer too."""
    try:
        return question()
    except RuntimeError:
        return "set by fp32_precision"


def switch_on() -> list[str]:
    """Set the switches; returns what they cost and what came too late, a sentence each."""
    global _wanted, _environment_before
    _wanted = True
    said = []
    if os.environ.get(_ENVIRONMENT) not in _REPEATABLE:
        if _cuda_started():
            said.append(
                f"{_ENVIRONMENT} comes too late, CUDA has started: restart the kernel and run this "
                f"first, or set it to {_REPEATABLE[0]} before Python starts"
            )
        else:
            _environment_before = (os.environ.get(_ENVIRONMENT),)
            os.environ[_ENVIRONMENT] = _REPEATABLE[0]
    if is_imported("torch"):
        torch_arrived()
    said.append("deterministic kernels can be slower, and operations without one raise an error")
    if os.environ.get("PYTHONHASHSEED") in (None, "random"):
        said.append(
            "PYTHONHASHSEED comes too late: set it to 0 before Python starts, or sort what comes "
            "out of sets of text"
        )
    return said


def torch_arrived() -> None:
    """Set torch's switches, if they were asked for, and remember what they were."""
    global _before
    if not _wanted or _before is not None:
        return
    torch: Any = sys.modules["torch"]
    _before = {
        "algorithms": (
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
        ),
        "deterministic": torch.backends.cudnn.deterministic,
        "benchmark": torch.backends.cudnn.benchmark,
        "matmul": _asked(lambda: torch.backends.cuda.matmul.allow_tf32),
        "cudnn": _asked(lambda: torch.backends.cudnn.allow_tf32),
    }
    _set(torch, (True, False), deterministic=True, benchmark=False, matmul=False, cudnn=False)


def switch_off() -> list[str]:
    """Put the switches back to what they were before `switch_on`; says so if it did."""
    global _wanted, _before, _environment_before
    if not _wanted:
        return []
    if _before is not None:
        _set(sys.modules["torch"], _before.pop("algorithms"), **_before)
    if _environment_before is not None:
        (value,) = _environment_before
        if value is None:
            os.environ.pop(_ENVIRONMENT, None)
        else:
            os.environ[_ENVIRONMENT] = value
    _wanted, _before, _environment_before = False, None, None
    return ["the deterministic switches are put back to what they were"]


def _set(
    torch: Any,
    algorithms: tuple[bool, bool],
    *,
    deterministic: bool,
    benchmark: bool,
    matmul: bool | str,
    cudnn: bool | str,
) -> None:
    enabled, warn_only = algorithms
    torch.use_deterministic_algorithms(enabled, warn_only=warn_only)
    torch.backends.cudnn.deterministic = deterministic
    torch.backends.cudnn.benchmark = benchmark
    # A value that could not be read (the user has moved to fp32_precision) is not written either.
    if isinstance(matmul, bool) and isinstance(
        _asked(lambda: torch.backends.cuda.matmul.allow_tf32), bool
    ):
        torch.backends.cuda.matmul.allow_tf32 = matmul
    if isinstance(cudnn, bool) and isinstance(
        _asked(lambda: torch.backends.cudnn.allow_tf32), bool
    ):
        torch.backends.cudnn.allow_tf32 = cudnn


def _cuda_started() -> bool:
    return is_imported("torch") and bool(sys.modules["torch"].cuda.is_initialized())
