"""What a rewind does not reach: other processes, live iterators, uncovered generators, threads."""

from __future__ import annotations

from ..unreached import COMPILED, GRAPH, ITERATOR, PERSISTENT, POOL
from ..watch import Call
from .cause import Cause, Pair, listed, place, times


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
                f"%%rngcheckpoint {pair.name} --reset takes it anew, with what is there now",
            )
        )
    persistent = by_kind.get(PERSISTENT, [])
    paths = [p for p in by_kind.get(ITERATOR, []) if p.rpartition(".")[0] not in persistent]
    if paths:
        found.append(
            Cause(
                60,
                f"{listed(paths)} is a live iterator",
                tuple(f"{path} goes on where the last run left it" for path in paths),
                "make the iterator inside the cell",
            )
        )
    found += _threads(pair)
    for kind, weight in ((GRAPH, 45), (COMPILED, 30)):
        if kind in by_kind:
            paths = by_kind[kind]
            found.append(
                Cause(
                    weight,
                    f"{listed(paths)} holds {kind}",
                    (f"draws inside {kind} follow rules of their own",),
                    "run once without it, and compare",
                )
            )
    return found


def _persistent(paths: list[str]) -> Cause:
    return Cause(
        97,
        f"{listed(paths)} keeps persistent workers, which a rewind does not reach",
        tuple(
            f"{path}: its worker processes go on with the random state that they have; "
            "persistent_workers=True"
            for path in paths
        ),
        "make the DataLoader inside the cell, or persistent_workers=False",
    )


def _processes(pair: Pair, pools: list[str]) -> list[Cause]:
    started = [c for c in (*pair.now.calls, *pair.before.calls) if c.kind == "process"]
    workers = [call for call in started if not _is_polite(call)]
    alive = tuple(dict.fromkeys((*pair.before.alive, *pair.now.alive)))
    if not (workers or alive or pools):
        return []
    evidence = [f"{path} holds worker processes" for path in pools]
    for call in dict.fromkeys(_where(call) for call in workers):
        evidence.append(call)
    if pair.now.alive:
        evidence.append(f"alive before the cell began: {listed(list(pair.now.alive))}")
    return [
        Cause(
            70,
            "worker processes draw from generators of their own",
            tuple(evidence),
            "seed inside the worker's function, from its arguments: "
            "rng = np.random.default_rng([3, i])",
        )
    ]


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
            "one generator a thread: np.random.default_rng([3, i])",
        )
    ]
