"""Entropy that no seed controls: unseeded generators, ``uuid4``, ``secrets``, ``os.urandom``."""

from __future__ import annotations

from ..watch import Call
from .cause import Cause, Pair, cut, listed, place, times

_NUMPY = ("default_rng", "RandomState", "SeedSequence", "PCG64", "MT19937", "Philox", "SFC64")
_REMEDIES = (
    ("torch.seed", "`torch.manual_seed(3)`"),
    ("uuid", "`uuid.UUID(int=random.getrandbits(128), version=4)`"),
    ("random.Random", "`random.Random(3)`"),
    ("np.random.seed", "`np.random.seed(3)`, or `%seed 3 --pin-entropy`"),
    ("random.seed", "`random.seed(3)`"),
    ("secrets", "`random.randbytes(n)`, `random.randrange(n)`"),
    ("urandom", "`random.randbytes(n)`"),
    ("SystemRandom", "`random.Random(3)`"),
)


def find(pair: Pair) -> list[Cause]:
    """One cause for all calls that took entropy in either run."""
    calls: dict[tuple[str, int, str], Call] = {}
    for call in (*pair.now.calls, *pair.before.calls):
        if call.kind == "entropy":
            calls.setdefault((call.what, call.site.line, call.site.through), call)
    if not calls:
        return []
    found = list(calls.values())
    whats = list(dict.fromkeys(call.what for call in found))
    where = found[0].site
    through = f" in {where.through}" if where.through else ""
    at = f" ({place(where.line)}{through})" if where.line else through
    now = {id(call) for call in pair.now.calls}
    return [
        Cause(
            weight=90,
            said=f"{listed(whats, 2)} without a seed{at}",
            evidence=tuple(_evidence(found, {id(c) for c in found} - now)),
            remedy="; ".join(dict.fromkeys(_remedy(call) for call in found)),
        )
    ]


def _evidence(calls: list[Call], only_first: set[int]) -> list[str]:
    """A sentence for each line of the notebook, with what it called and how often."""
    lines: dict[str, list[str]] = {}
    for call in calls:
        site = call.site
        who = f" by way of {site.through}" if site.through else ""
        ran = ", in the first run" if id(call) in only_first else ""
        where = f"{place(site.line)}, {cut(site.text)}" if site.line else cut(site.text)
        lines.setdefault(where, []).append(f"{call.what} {times(call.count)}{who}{ran}")
    return [f"{where}: {'; '.join(said)}, which no seed controls" for where, said in lines.items()]


def _remedy(call: Call) -> str:
    if any(name in call.what for name in _NUMPY):
        if not call.site.users:
            return (
                "`%seed 3 --pin-entropy`, or hand a seeded generator to it "
                "(`rng=`, `random_state=`, `v0=` or the like)"
            )
        return f"`{call.what.removesuffix('()')}(3)`, or `%seed 3 --pin-entropy`"
    return next((said for key, said in _REMEDIES if key in call.what), "give it a seed")
