"""pandas' frames, and SciPy's sparse matrices: column by column, whatever blocks they lie in."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from .arrays import UNORDERED
from .attributes import attributes
from .plain import step
from .record import Node, counted, digest, either_way

if TYPE_CHECKING:
    from .reader import Handler, Reader


def frame(reader: Reader, value: Any) -> Node:
    manager = object.__getattribute__(value, "_mgr")
    columns, index = manager.axes
    names = list(columns)
    nodes = [_values(reader, manager.iget_values(i)) for i in range(len(names))]
    children = [
        (".index", reader.look(index)),
        (".columns", reader.look(columns)),
        *((step(name), node) for name, node in zip(names, nodes, strict=True)),
    ]
    fields = [counted(len(index), "row"), counted(len(names), "column")]
    few = len(reader.stack) <= 2
    columns_ = [manager.iget_values(i) for i in range(len(names))] if few else []
    bag = either_way(_rows(columns_), digest([node.digest for node in nodes]))
    return reader.node(value, children, fields, bag=bag)


def series(reader: Reader, value: Any) -> Node:
    manager = object.__getattribute__(value, "_mgr")
    held = manager.blocks[0].values
    values = _values(reader, held)
    index = reader.look(manager.axes[0])
    name = reader.look(object.__getattribute__(value, "_name"))
    bag = either_way(_rows([held]), values.digest) if len(reader.stack) <= 2 else ""
    fields = [f"dtype {held.dtype}", counted(len(manager.axes[0]), "item")]
    return reader.node(
        value, [(".values", values), (".index", index), (".name", name)], fields, bag=bag
    )


def index(reader: Reader, value: Any) -> Node:
    names = reader.look(list(value.names))
    bases = {base.__name__ for base in type(value).__mro__}
    if "RangeIndex" in bases:
        held = value._range
        return reader.node(
            value, [(".names", names)], [counted(len(held), "item")], reader.look(held).digest
        )
    if "MultiIndex" in bases:
        parts = [*value.levels, *(_values(reader, codes) for codes in value.codes)]
        digests = [
            part.digest if type(part) is Node else reader.look(part).digest for part in parts
        ]
        return reader.node(value, [(".names", names)], [counted(len(value), "item")], digests)
    held = _values(reader, value._data)
    fields = [f"dtype {value.dtype}", counted(len(value), "item")]
    return reader.node(value, [(".names", names)], fields, held.digest)


def _values(reader: Reader, held: Any) -> Node:
    """A column: an array of NumPy's or one of pandas' own kinds."""
    node = reader.look(held)
    dtype = str(held.dtype)
    return node._replace(kind="column", fields=[f"dtype {dtype}"], bag="", children=())


def extension(reader: Reader, value: Any) -> Node:
    """One of pandas' own arrays, by its parts; what a mask hides counts as nothing."""
    kind = type(value)
    if kind.__module__.partition(".")[0] != "pandas":
        return reader.opaque(value)
    bases = {base.__name__ for base in kind.__mro__}
    fields = [f"dtype {value.dtype}", counted(len(value), "item")]
    parts: list[Any]
    if "Categorical" in bases:
        parts = [value.codes, value.categories, value.ordered]
    elif "BaseMaskedArray" in bases:
        data = value._data.copy()
        data[value._mask] = data.dtype.type()
        parts = [data, value._mask]
    elif "NDArrayBackedExtensionArray" in bases:
        parts = [value._ndarray]
    elif "IntervalArray" in bases:
        parts = [value._left, value._right]
    else:
        np: Any = sys.modules["numpy"]
        parts = [np.asarray(value, dtype=object).tolist()]
    return reader.node(value, (), fields, [reader.look(part).digest for part in parts])


def _rows(columns: list[Any]) -> str:
    """A digest of a frame's rows that their order does not change; empty if it would take long."""
    np: Any = sys.modules["numpy"]
    pandas: Any = sys.modules["pandas"]
    if not columns or len(columns[0]) < 2 or sum(c.nbytes for c in columns) > UNORDERED:
        return ""
    total = None
    for number, column in enumerate(columns):
        if column.dtype.kind == "O" and not {*map(type, column)} <= {
            str,
            float,
            int,
            bool,
            type(None),
        }:
            return ""  # pandas would ask a user's object for its hash or text
        words = pandas.util.hash_array(column, categorize=False) * np.uint64(2 * number + 3)
        total = (
            words
            if total is None
            else (total ^ (total >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15) + words
        )
    mixed: Any = (total ^ (total >> np.uint64(29))) * np.uint64(0xD1B54A32D192ED03)
    mixed ^= mixed >> np.uint64(32)
    return digest(len(mixed), int(np.add.reduce(mixed))).hex()


def moment(reader: Reader, value: Any) -> Node:
    """A Timestamp, Timedelta, Period or Interval: by its text, which is exact."""
    text = f"{value!s}{getattr(value, 'freqstr', '') or ''}"
    name = type(value).__name__
    own = digest(
        name,
        text,
        getattr(value, "unit", ""),
        getattr(value, "_value", 0),
        getattr(value, "ordinal", 0),
    )
    return Node(own, name, shown=f"{name}({text!r})"[:60])


def missing(reader: Reader, value: Any) -> Node:
    name = type(value).__name__
    return Node(digest(name), name, shown=str(value))


def sparse(reader: Reader, value: Any) -> Node:
    """A sparse matrix by its arrays; what SciPy finds out about their order on the way is not."""
    kept = [
        (key, item)
        for key, item in attributes(value)
        if key not in ("_has_canonical_format", "_has_sorted_indices", "maxprint")
    ]
    held = dict(kept)
    shape = held.get("_shape")
    fields = [f"shape {shape}"] if type(shape) is tuple else []
    parts = [(f".{key}", reader.look(item)) for key, item in kept if key != "_shape"]
    return reader.node(value, parts, fields, ordered=False)


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(("pandas.core.frame.DataFrame", "pandas.DataFrame"), frame),
    **dict.fromkeys(("pandas.core.series.Series", "pandas.Series"), series),
    **dict.fromkeys(("pandas.core.indexes.base.Index", "pandas.Index"), index),
    "pandas.core.arrays.base.ExtensionArray": extension,
    "pandas.api.extensions.ExtensionArray": extension,
    **{
        f"pandas.{home}{name}": moment
        for home, name in (
            ("_libs.tslibs.timestamps.", "Timestamp"), ("_libs.tslibs.timedeltas.", "Timedelta"),
            ("_libs.tslibs.period.", "Period"), ("_libs.interval.", "Interval"),
            ("", "Timestamp"), ("", "Timedelta"), ("", "Period"), ("", "Interval"),
        )
    },
    "pandas._libs.missing.NAType": missing,
    "pandas._libs.tslibs.nattype.NaTType": missing,
    "pandas.api.typing.NaTType": missing,
    "pandas.api.typing.NAType": missing,
    "scipy.sparse._base._spbase": sparse,
    "scipy.sparse._base.spmatrix": sparse,
    "scipy.sparse.base.spmatrix": sparse,
}  # fmt: skip
