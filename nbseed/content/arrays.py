"""NumPy's arrays and generators, and torch's tensors: their bits, read in pieces without a copy."""

from __future__ import annotations

import ctypes
import hashlib
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from .attributes import mro
from .plain import LEAVES, leaf
from .record import SHORT, Node, digest, either_way

if TYPE_CHECKING:
    from .reader import Handler, Reader

PIECE = 4 << 20
"""How many bytes are hashed between two looks at the clock."""
UNORDERED = 4 << 20
"""How many bytes of an array are compared regardless of the order of its rows."""
ON_DEVICE = 64 << 20
"""How many bytes of one tensor are fetched from a GPU."""


def hashed(reader: Reader, pieces: Iterable[Any]) -> bytes:
    """16 bytes over buffers, a few MB at a time.

    SHA-1, since processors have instructions for it and BLAKE2b takes twice the time; nobody
    forges arrays here. SHA-256 is as fast on some processors and half as fast on the others.
    """
    whole = hashlib.sha1(usedforsecurity=False)
    for piece in pieces:
        for start in range(0, len(piece), PIECE):
            reader.check_time()
            whole.update(piece[start : start + PIECE])
    return whole.digest()[:16]


def array(reader: Reader, value: Any) -> Node:
    """An array by shape, dtype and bits; the order of its memory makes no difference."""
    np: Any = sys.modules["numpy"]
    plain = np.ndarray.view(value, np.ndarray)
    kind = plain.dtype
    fields = [f"dtype {_dtype(kind)}", f"shape {plain.shape}"]
    children: list[tuple[str, Node]] = []
    bag: Any = ""
    if kind.hasobject or kind.kind == "T":
        if kind.names:
            children = [(f"[{name!r}]", reader.look(plain[name])) for name in kind.names]
            return reader.node(value, children, fields)
        items = reader.look(plain.ravel().tolist() if plain.ndim else [plain.item()])
        children = list(items.children) if plain.ndim == 1 else []
        bag = items.bag if plain.ndim == 1 else ""
        node = reader.node(value, (), fields, items.digest, bag)
        node = node._replace(children=children)
    elif kind.names:
        # Field by field: what lies between them is left from whatever was there before.
        for name in kind.names:
            children.append((f"[{name!r}]", array(reader, plain[name])))
        node = reader.node(value, children, fields, str(kind))
    else:
        payload = hashed(reader, _pieces(np, plain))
        if plain.ndim and len(reader.stack) <= 2 and 0 < plain.nbytes <= UNORDERED:
            flat = np.ascontiguousarray(plain).reshape(-1).view(np.uint8)
            bag = either_way(unordered(np, flat, len(plain)), payload)
        node = reader.node(value, (), fields, payload, bag)
        if plain.ndim == 0:
            node = node._replace(shown=_scalar(node, "array", plain.item(), kind.name))
    reader.buffers[id(value)] = value, node
    return node


def _dtype(kind: Any) -> str:
    text = str(kind)
    return text if len(text) <= SHORT else f"of {len(kind.names or ())} fields"


def _scalar(node: Node, name: str, item: object, dtype: str) -> str:
    if type(item) not in LEAVES:
        return ""
    usual = dtype in ("float32", "float64", "int64", "bool")
    return f"{name}({leaf(item).text}{'' if usual else f', {dtype}'})"


def _pieces(np: Any, plain: Any) -> Iterator[Any]:
    """The bytes of an array in C order, copied piece by piece where they do not lie so."""
    if not plain.nbytes:
        return
    if plain.flags.c_contiguous:
        yield plain.reshape(-1).view(np.uint8)
    elif plain.nbytes <= PIECE or plain.ndim == 1:
        step = max(1, PIECE // plain.itemsize) if plain.ndim == 1 else len(plain)
        for start in range(0, len(plain), step):
            yield np.ascontiguousarray(plain[start : start + step]).reshape(-1).view(np.uint8)
    else:
        for row in plain:
            yield from _pieces(np, row)


def unordered(np: Any, flat: Any, rows: int) -> str:
    """A digest of the rows of an array, as bytes, that their order does not change.

    A sum over well-mixed 64-bit words, some 4 GB a second; sorting takes four times as long.
    """
    if rows < 2:
        return ""
    width = len(flat) // rows
    unit = next(size for size in (8, 4, 2, 1) if width % size == 0)
    words = flat.view(f"u{unit}").reshape(rows, width // unit)
    columns = words.shape[1]
    odd, first, second = np.uint64(0x9E3779B97F4A7C15), np.uint64(32), np.uint64(29)
    # Each column has a factor of its own, so that a row is more than the sum of its items.
    factors = (np.arange(columns, dtype=np.uint64) * np.uint64(0xD1B54A32D192ED03)) | np.uint64(1)
    total, step = 0, max(1, 16_384 // columns)
    # In two blocks that stay in the processor's cache.
    held, other = np.empty((2, min(step, rows), columns), np.uint64)
    for start in range(0, rows, step):
        part = words[start : start + step]
        block, spare = held[: len(part)], other[: len(part)]
        np.multiply(part, odd, out=block)
        np.right_shift(block, first, out=spare)
        np.bitwise_xor(block, spare, out=block)
        np.multiply(block, factors, out=block)
        if columns > 1:
            block = np.add.reduce(block, axis=1)
            block ^= block >> second
            block *= odd
            spare = spare[:, 0]
        # Both halves, since sums forget what is carried beyond their last bit.
        np.right_shift(block, first, out=spare)
        total += int(np.add.reduce(block, axis=None)) + (int(np.add.reduce(spare, axis=None)) << 64)
    return digest(rows, width, total % 2**128).hex()


def generic(reader: Reader, value: Any) -> Node:
    np: Any = sys.modules["numpy"]
    name = type(value).__name__
    inner = array(reader, np.asarray(value))
    own = digest(name, inner.digest)
    item = value.item()
    fits = type(item) in LEAVES and len(leaf(item).text) <= SHORT
    return Node(own, name, shown=f"{name}({leaf(item).text})" if fits else "")


def stream(reader: Reader, value: Any) -> Node:
    """One of NumPy's generators by its state, and by how many others it has spawned."""
    random: Any = sys.modules["numpy.random"]
    kind = type(value)
    if issubclass(kind, random.RandomState):
        state: Any = random.RandomState.get_state(value, legacy=False)
        return reader.node(value, (), (), reader.look(state).digest)
    if issubclass(kind, random.SeedSequence):
        state = (value.entropy, value.spawn_key, value.pool_size)
        spawned = reader.look(value.n_children_spawned)
        return reader.node(value, [(".n_children_spawned", spawned)], (), reader.look(state).digest)
    bits = value.bit_generator if issubclass(kind, random.Generator) else value
    if not type(bits).__module__.startswith("numpy."):
        return reader.opaque(value)
    seeds = getattr(bits, "seed_seq", None) or getattr(bits, "_seed_seq", None)
    count = getattr(seeds, "n_children_spawned", None)
    payload = reader.look(bits.state).digest, count
    return reader.node(value, (), [type(bits).__name__], payload)


# torch


def tensor(reader: Reader, value: Any) -> Node:
    """A tensor by shape, dtype, device and bits; what is no plain block of memory by its type."""
    torch: Any = sys.modules["torch"]
    mixin = getattr(torch.nn.parameter, "UninitializedTensorMixin", ())
    if issubclass(type(value), mixin):
        return reader.opaque(value, "not initialised")
    # A subclass, or a mode that is on, may run a user's code for any attribute.
    with torch._C.DisableTorchFunction():
        node: Node = _tensor(reader, torch, value)
    reader.buffers[id(value)] = value, node
    return node


def _tensor(reader: Reader, torch: Any, value: Any) -> Node:
    dtype = str(value.dtype).removeprefix("torch.")
    fields = [
        f"dtype {dtype}",
        f"shape {tuple(value.shape)}",
        f"requires_grad {value.requires_grad}",
    ]
    device = value.device
    if device.type != "cpu":
        fields.append(f"device {device}")
    size = value.numel() * value.element_size() if value.layout is torch.strided else 0
    if (
        value.layout is not torch.strided
        or value.is_quantized
        or device.type not in ("cpu", "cuda")
        or (device.type == "cuda" and size > ON_DEVICE)
    ):
        return reader.opaque(value, *fields)
    flat = value.detach()
    if flat.is_conj() or flat.is_neg():
        flat = flat.resolve_conj().resolve_neg()
    held = flat.untyped_storage()
    if held.nbytes() < (flat.storage_offset() * flat.element_size()) + (
        size if flat.is_contiguous() else 0
    ):
        return reader.opaque(value, *fields)  # its memory was given away
    payload = hashed(reader, _blocks(flat))
    bag = ""
    np: Any = sys.modules.get("numpy")
    few = len(reader.stack) <= 2 and type(value) is torch.Tensor
    if np is not None and few and flat.dim() and 0 < size <= UNORDERED and device.type == "cpu":
        whole = flat.contiguous()
        rows = unordered(np, np.frombuffer(_memory(whole), np.uint8), len(whole))
        bag = either_way(rows, payload)
    node = reader.node(value, (), fields, payload, bag)
    if not flat.dim() and device.type == "cpu" and not value.requires_grad:
        return node._replace(shown=_scalar(node, "tensor", flat.item(), dtype))
    return node


def _memory(block: Any) -> Any:
    """The bytes of a contiguous tensor on the CPU, for as long as it lives."""
    size = block.numel() * block.element_size()
    return memoryview((ctypes.c_ubyte * size).from_address(block.data_ptr())).cast("B")


def _blocks(flat: Any) -> Iterator[Any]:
    """The bytes of a tensor in C order, copied piece by piece where they do not lie so."""
    size = flat.numel() * flat.element_size()
    if not size:
        return
    if flat.is_contiguous() and flat.device.type == "cpu":
        # A small copy is had faster than a view.
        yield ctypes.string_at(flat.data_ptr(), size) if size < 65_536 else _memory(flat)
    elif size <= PIECE or not flat.dim():
        copy = flat.cpu().contiguous()
        yield ctypes.string_at(copy.data_ptr(), size)
    else:
        step = max(1, len(flat) * PIECE // size)
        for start in range(0, len(flat), step):
            part = flat[start : start + step]
            if len(part) == 1 and part.numel() * part.element_size() > PIECE:
                part = part[0]
            yield from _blocks(part)


def torch_generator(reader: Reader, value: Any) -> Node:
    if value.device.type != "cpu":
        return reader.opaque(value)
    return reader.node(value, (), (), reader.look(value.get_state()).digest)


def _by_text(reader: Reader, value: Any) -> Node:
    """A dtype, a device, a shape: by its text."""
    name = type(value).__name__
    return Node(digest(name, str(value)), name, shown=str(value)[:SHORT])


def size(value: Any, steps: int = 3) -> float:
    """About how many bytes lie in a variable's arrays; looks at few objects and never raises."""
    try:
        return _size(value, steps)
    except Exception:
        return 0.0


def _size(value: Any, steps: int) -> float:
    kind = type(value)
    if kind in (str, bytes, bytearray, list, tuple, dict) and (not steps or len(value) > 100):
        return 8.0 * len(value) if kind in (list, tuple, dict) else float(len(value))
    if kind in (list, tuple):
        return sum(_size(item, steps - 1) for item in value)
    if kind is dict:
        return sum(_size(item, steps - 1) for item in list(value.values()))
    names = {f"{base.__module__}.{base.__qualname__}" for base in mro(kind)}
    if "numpy.ndarray" in names:
        np: Any = sys.modules["numpy"]
        return float(np.ndarray.view(value, np.ndarray).nbytes)
    if "torch.Tensor" in names:
        torch: Any = sys.modules["torch"]
        with torch._C.DisableTorchFunction():
            return float(value.numel() * value.element_size())
    if "torch.nn.modules.module.Module" in names:
        held = value.__dict__
        below = [*held["_parameters"].values(), *held["_buffers"].values()]
        return sum(_size(item, 0) for item in below if item is not None) + sum(
            _size(inner, steps) for inner in held["_modules"].values()
        )
    if "pandas.core.generic.NDFrame" in names:
        return float(sum(getattr(b.values, "nbytes", 0) for b in value._mgr.blocks))
    return 0.0


HANDLERS: dict[str, Handler] = {
    "numpy.ndarray": array,
    "numpy.generic": generic,
    "numpy.dtype": _by_text,
    **{
        f"numpy.random.{name}": stream
        for name in (
            "_generator.Generator", "bit_generator.BitGenerator", "mtrand.RandomState",
            "bit_generator.SeedSequence",
        )
    },
    **dict.fromkeys(("torch.Tensor", "torch.nn.parameter.Parameter"), tensor),
    "torch._C.Generator": torch_generator,
    "torch.Generator": torch_generator,
    **{
        f"torch.{name}": _by_text
        for name in ("dtype", "device", "Size", "layout", "memory_format")
    },
}  # fmt: skip
