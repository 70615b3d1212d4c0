"""What a rewind does not reach: other processes, live iterators, uncovered generators, threads."""

from __future__ import annotations

from ..unreached import COMPILED, GRADIENTS, GRAPH, ITERATOR, PERSISTENT, POOL
from ..watch import Call
from .cause import Cause, Pair, listed, place, times
from .variables import both


def find(pair: Pair) -> list[Cause]:
    """What either run met or started that keeps random state of its own."""
    found = []
    met = {**pair.before.unreached, **pair.now.unreached}
    by_kind: dict[str, list[str]] = {}
    for path, kind in met.items():
        by_kind.setdefault(kind, []).append(path)
    if PERSISTENT in by_kind:
        found.append(_persistent(by_kind[PERSISTENT]))
    else:
        found += _processes(pair, by_kind.get(POOL, []))
    if pair.run.partial or pair.base.partial:
        notes = [n for run in (pair.run, pair.base) for n in run.notes if n.startswith("not ")]
        found.append(
            Cause(
                85,
                "some generators were not rewound",
                tuple(dict.fromkeys(notes)),
                f"`%%rngcheckpoint {pair.name} --reset` takes it anew, with what is there now",
            )
        )
    persistent = by_kind.get(PERSISTENT, [])
    # Of what both runs have looked into it is known whether it went on: it differs, or it is new.
    known = {name for name, b, n in both(pair) if b.digest != n.digest or not n.opaque}
    paths = [
        path
        for path in by_kind.get(ITERATOR, [])
        if path.rpartition(".")[0] not in persistent and _root(path) not in known
    ]
    if paths:
        found.append(
            Cause(
                60,
                f"{listed(paths)} {'goes' if len(paths) == 1 else 'go'} on from an earlier run",
                tuple(f"{path} goes on where the last run left it" for path in paths),
                "make the iterator inside the cell",
            )
        )
    found += _threads(pair)
    found += _gradients(pair)
    for kind, weight in ((GRAPH, 45), (COMPILED, 30)):
        if kind in by_kind:
            paths = by_kind[kind]
            found.append(
                Cause(
                    weight,
                    f"{listed(paths)} {'holds' if len(paths) == 1 else 'hold'} {kind}",
                    (f"draws inside {kind} follow rules of their own",),
                    "run once without it, and compare",
                )
            )
    return found


def _persistent(paths: list[str]) -> Cause:
    return Cause(
        97,
        f"{listed(paths)} {'keeps' if len(paths) == 1 else 'keep'} persistent workers, "
        "which a rewind does not reach",
        tuple(
            f"{path}: its worker processes go on with the random state that they have; "
            "persistent_workers=True"
            for path in paths
        ),
        "make the DataLoader inside the cell, or `persistent_workers=False`",
    )


def _processes(pair: Pair, pools: list[str]) -> list[Cause]:
    started = [c for c in (*pair.now.calls, *pair.before.calls) if c.kind == "process"]
    programs = [call for call in started if call.what == "Popen"]
    workers = [call for call in started if call not in programs and not _is_polite(call)]
    alive = tuple(dict.fromkeys((*pair.before.alive, *pair.now.alive)))
    if not (workers or alive or pools):
        return _programs(programs)
    evidence = [f"{path} holds worker processes" for path in pools]
    for call in dict.fromkeys(_where(call) for call in workers):
        evidence.append(call)
    if alive:
        evidence.append(f"alive before the cell began: {listed(alive)}")
    return [
        Cause(
            70,
            "worker processes were at work, and no rewind reaches their generators or their order",
            tuple(evidence),
            "seed inside the worker's function, from its arguments: "
            "`rng = np.random.default_rng([3, i])`",
        )
    ]


def _programs(programs: list[Call]) -> list[Cause]:
    if not programs:
        return []
    return [
        Cause(
            38,
            "a program was run, and what it gives may differ",
            tuple(dict.fromkeys(_where(call) for call in programs)),
            "look at what it prints in both runs",
        )
    ]


def _gradients(pair: Pair) -> list[Cause]:
    """Gradients of the last run that the first one did not meet: ``backward()`` adds to them."""
    paths = [
        path
        for path, kind in pair.now.unreached.items()
        if kind == GRADIENTS and path not in pair.before.unreached and "." not in path
    ]
    if not paths or "zero_grad" in "".join(pair.texts().values()):
        return []
    return [
        Cause(
            53,
            f"{listed(paths)} still had gradients of an earlier run",
            tuple(f"{path}: backward() adds to the gradients that are there" for path in paths),
            f"`optimizer.zero_grad()`, or `{paths[0]}.grad = None`, at the head of the cell",
        )
    ]


def _root(path: str) -> str:
    return path.partition(".")[0].partition("[")[0]


def _is_polite(call: Call) -> bool:
    """Whether a process gets its seed from a stream that was rewound: a DataLoader's worker."""
    return call.site.library == "torch"


def _where(call: Call) -> str:
    who = f" by {call.site.through}" if call.site.through else ""
    at = f" ({place(call.site.line)})" if call.site.line else ""
    return f"{call.what} was started {times(call.count)}{who}{at}"


def _threads(pair: Pair) -> list[Cause]:
    threads = [c for c in pair.now.calls if c.kind == "thread"]
    if not threads:
        return []
    return [
        Cause(
            40,
            "threads may take their draws in another order",
            tuple(dict.fromkeys(_where(call) for call in threads)),
            "one generator a thread: `np.random.default_rng([3, i])`",
        )
    ]
