"""Where a call comes from: the line of the user's cell, and the function or library in between."""

from __future__ import annotations

import ast
import functools
import itertools
import linecache
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

from ..generators.user import library_folders

# Between the user and the entropy: they hand it on, and are not where the choice was made.
_PASS_ON = {"random", "secrets", "uuid"}
# What belongs to the front end, or draws for file names, identities of messages and the like.
_INNOCENT = {
    "IPython", "ipykernel", "ipywidgets", "jupyter_client", "traitlets", "comm", "zmq", "nbseed",
    "debugpy", "matplotlib", "matplotlib_inline", "tqdm", "bokeh", "plotly", "altair", "panel",
    "wandb", "mlflow", "tensorboard", "tensorboardX", "comet_ml", "neptune", "requests", "urllib3",
    "httpx", "aiohttp", "huggingface_hub", "fsspec", "boto3", "botocore", "sqlalchemy", "loguru",
    "sentry_sdk", "pluggy", "pytest", "_pytest", "filelock", "h5py", "rich", "papermill",
    "executing",
}  # fmt: skip
# Of these the processes and threads matter, their names for things do not.
_POOLS = {"joblib", "loky", "dask", "distributed", "ray", "pyspark", "numba", "cloudpickle"}


@dataclass(frozen=True)
class Site:
    """Where a call was made.

    Attributes
    ----------
    line
        Of the cell, from 1; 0 if the call did not come from the cell's own code.
    text
        That line.
    call
        The call as its source has it, or "" where there is no source.
    through
        The function in between, as ``label_colors`` or ``eigsh of scipy``; "" if the cell itself
        calls.
    users
        Whether the user's own code made the call, not a library's.
    library
        The library that made it, or "".
    importing
        The module whose import made it, or "".
    """

    line: int
    text: str
    call: str
    through: str
    users: bool
    library: str
    importing: str

    @property
    def innocent(self) -> bool:
        """Whether the call serves the front end, a log, a progress bar or the like."""
        return self.library in _INNOCENT

    @property
    def for_names(self) -> bool:
        """Whether entropy taken here makes names of files and things, not the user's numbers."""
        return self.innocent or self.library in _POOLS or self.library in sys.stdlib_module_names


def frames_from(frame: FrameType | None) -> Iterator[FrameType]:
    """A frame and those that called it, the innermost first."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def outermost(frame: FrameType | None, namespace: Mapping[str, Any]) -> FrameType | None:
    """The outermost frame of the user's code, up to the front end."""
    found = None
    for outer in frames_from(frame):
        if outer.f_globals is namespace:
            found = outer
        elif _is_front_end(outer):
            break
    return found


def beyond_random(frame: FrameType | None) -> Iterator[FrameType]:
    """The same without the inner frames that only hand entropy on."""
    return itertools.dropwhile(lambda f: _package(f) in _PASS_ON, frames_from(frame))


def is_retry(frame: FrameType) -> bool:
    """Whether ``random`` asks once more because a number was out of range: it is the same call."""
    asking = frame.f_back
    return (
        asking is not None
        and asking.f_code.co_name == "_randbelow_with_getrandbits"
        and "r" in asking.f_locals
    )


def locate(frame: FrameType | None, namespace: Mapping[str, Any]) -> Site | None:
    """The site of a call made in `frame`; None if the user's cell has no part in it.

    Parameters
    ----------
    namespace
        The notebook's variables: frames of its code are known by them.
    """
    chain = list(itertools.takewhile(lambda f: not _is_front_end(f), frames_from(frame)))
    own = [index for index, f in enumerate(chain) if f.f_globals is namespace]
    if not own:
        return None
    outermost = chain[own[-1]]
    between = chain[: own[-1]]
    if any(_package(f) == "nbseed" for f in between[1:]) or _package(chain[0]) == "nbseed":
        return None  # our own seeding, or a call that another hook has seen
    made = next(f for f in chain if _package(f) not in _PASS_ON and _package(f) != "numpy")
    users = _is_users(made, namespace)
    importing = _importing(between)
    return Site(
        line=outermost.f_lineno if _is_cells(outermost) else 0,
        text=_line(outermost.f_code.co_filename, outermost.f_lineno),
        call=call_in(made),
        through=_through(chain, made, own, importing),
        users=users,
        library="" if users else _package(made),
        importing=importing,
    )


def _through(chain: list[FrameType], made: FrameType, own: list[int], importing: str) -> str:
    if importing:
        return f"the import of {importing}"
    if not _is_cells(made) and (made is chain[own[0]] or chain.index(made) > own[0]):
        return _function(made)
    if own[0] == 0 or made is chain[own[0]]:
        return ""
    entry = chain[own[0] - 1]  # what the user's innermost code called
    package = _package(entry)
    inner = chain[own[0]]
    outer = "" if _is_cells(inner) else f" in {_function(inner)}"
    return f"{_function(entry)} of {package}{outer}" if package else f"{_function(entry)}{outer}"


def _function(frame: FrameType) -> str:
    code = frame.f_code
    name: str = getattr(code, "co_qualname", code.co_name)  # Python 3.10 has no qualified names
    return name.replace(".<locals>", "")


def _is_cells(frame: FrameType) -> bool:
    """Whether a frame is a cell's own code, a comprehension in it too.

    IPython has names of its own for a cell that awaits.
    """
    name = _function(frame).rpartition(".")[0] or frame.f_code.co_name
    return name.startswith(("<module>", "<cell line", "async-def-wrapper")) or (
        frame.f_code.co_name in _COMPREHENSIONS and "." not in _function(frame)
    )


_COMPREHENSIONS = {"<listcomp>", "<genexpr>", "<setcomp>", "<dictcomp>"}  # frames up to Python 3.11


def _is_front_end(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__") == "IPython.core.interactiveshell"


def _package(frame: FrameType) -> str:
    name = frame.f_globals.get("__name__")
    return name.partition(".")[0] if isinstance(name, str) else ""


def _is_users(frame: FrameType, namespace: Mapping[str, Any]) -> bool:
    if frame.f_globals is namespace:
        return True
    file = frame.f_code.co_filename
    return not file.startswith("<frozen") and not _is_librarys(file)


@functools.lru_cache(maxsize=1000)
def _is_librarys(file: str) -> bool:
    parts = set(file.replace("\\", "/").split("/"))
    return file.startswith(library_folders()) or not parts.isdisjoint(
        {"site-packages", "dist-packages"}
    )


def _importing(between: list[FrameType]) -> str:
    """The module whose top-level code runs among some frames, the outermost."""
    for frame in reversed(between):
        if frame.f_code.co_name == "<module>" and isinstance(frame.f_globals.get("__name__"), str):
            name: str = frame.f_globals["__name__"]
            if name != "__main__":
                return name
    return ""


def _line(file: str, number: int) -> str:
    return linecache.getline(file, number).strip()


def call_in(frame: FrameType) -> str:
    """The source of the call that a frame is in, on one line; "" if there is none.

    From Python 3.11 on the instruction knows its columns; before, it is the whole line.
    """
    code = frame.f_code
    return _call_at(code, frame.f_lasti, frame.f_lineno)


@functools.lru_cache(maxsize=1000)
def _call_at(code: CodeType, instruction: int, number: int) -> str:
    positions = getattr(code, "co_positions", None)
    if positions is None or instruction < 0:
        return _line(code.co_filename, number)
    place = next(itertools.islice(positions(), instruction // 2, None), (None,) * 4)
    first, last, start, end = place
    if first is None or last is None:
        return _line(code.co_filename, number)
    lines = [linecache.getline(code.co_filename, n) for n in range(first, last + 1)]
    if not lines or not lines[0]:
        return ""
    raw = [line.encode() for line in lines]  # columns count bytes
    raw[-1] = raw[-1][:end]
    raw[0] = raw[0][start:]
    return " ".join(b"".join(raw).decode(errors="replace").split())


def argument(call: str, frame: FrameType, keyword: str) -> Any:
    """The first argument of a call, or that keyword: ``None`` if it is None or not given.

    Only what can be looked up without running anything is looked up; for all else `Ellipsis`.
    """
    node = _parsed(call)
    if node is None:
        return ...
    given = [*node.args[:1], *(k.value for k in node.keywords if k.arg == keyword)]
    if not given:
        return ... if any(k.arg is None for k in node.keywords) else None
    match given[0]:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            for scope in (frame.f_locals, frame.f_globals):
                if name in scope:
                    return scope[name]
    return ...


@functools.lru_cache(maxsize=1000)
def _parsed(call: str) -> ast.Call | None:
    try:
        tree = ast.parse(call, mode="eval").body
    except (SyntaxError, ValueError):
        return None
    return tree if isinstance(tree, ast.Call) else None


def short(call: str) -> str:
    """A call without its arguments: ``np.random.default_rng()``."""
    node = _parsed(call)
    if node is None:
        return ""
    name = ast.unparse(node.func)
    if len(name) > 40:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else f"{name[:37]}..."
    return f"{name}()"


def is_seeded(frame: FrameType) -> bool:
    """Whether a call that asks for entropy has a seed all the same.

    ``RandomState(8)`` takes entropy for a bit generator and then seeds it, and ``Philox(key=3)``
    for a sequence that it never uses. What is unpickled gets the state that it had.
    """
    if frame.f_globals.get("__name__") == "numpy.random._pickle":
        return True
    call = call_in(frame)
    node = _parsed(call)
    if node is None:
        names = set(frame.f_code.co_names)
        return not names.isdisjoint({"RandomState", "Philox"})
    made = _made(node, frame)
    if "RandomState" in made:
        return argument(call, frame, "seed") is not None
    if "Philox" in made:
        keyed = any(k.arg == "key" for k in node.keywords)
        return keyed or argument(call, frame, "seed") is not None
    return False


def _made(node: ast.Call, frame: FrameType) -> set[str]:
    """The name of what a call calls; of a class under another name, those of its bases too."""
    if isinstance(node.func, ast.Name):
        name = node.func.id
        made = frame.f_locals.get(name, frame.f_globals.get(name))
        if made is not None and issubclass(type(made), type):
            return {base.__name__ for base in made.__mro__}
    return {_last_name(node)}


def _last_name(node: ast.Call) -> str:
    return ast.unparse(node.func).rpartition(".")[2]


def is_unpickled(frame: FrameType) -> bool:
    """Whether a ``random.Random()`` is made to get the state of one that was pickled.

    The unpickler is written in C and has no frame: the line that calls it tells its name.
    """
    asking = next(beyond_random(frame), None)
    if asking is None:
        return False
    call = call_in(asking)
    node = _parsed(call)
    return bool(_LOADS(call)) if node is None else _last_name(node) in {"load", "loads"}


_LOADS = re.compile(r"\bloads?\(").search
