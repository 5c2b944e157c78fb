"""Audit randomizers of other libraries: pure-ldp, multi-freq-ldpy, OpenDP, whichever are installed.

Every client is called as its own documentation calls it, once for each report, on two of its values. Prints a table:
the library and its version, what is called, what is claimed, the epsilon that trials show, the verdict.
`python benchmarks/audit_libraries.py [trials]`; what is not installed is named and left out.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from hushuffle.attacks.audit import audit_sampler
from hushuffle.attacks.measured import Measurement

CATEGORIES = 8
CONFIDENCE = 1 - 0.05 / 15  # fifteen clients share the probability of a false alarm


@dataclass(frozen=True, kw_only=True)
class Case:
    """One client: which library, what is called, what it claims, and what gives one report for a code (0 or 1)."""

    library: str
    what: str
    claimed: float
    report: Callable[[int], Any]

    def audit(self, trials: int) -> Measurement:
        """Return what `trials` reports, half of either value, show."""
        return audit_sampler(
            lambda codes: [self.report(code) for code in codes.tolist()],
            (0, 1),
            claimed=self.claimed,
            trials=trials,
            confidence=CONFIDENCE,
        )


def pure_ldp() -> Iterator[Case]:
    """Yield the clients of pure-ldp: `client.privatise(item)`, items from 1, hashed as numbers from 0."""
    room = "pure_ldp.frequency_oracles"
    unary = import_module(f"{room}.unary_encoding").UEClient
    hashing = import_module(f"{room}.local_hashing").LHClient(epsilon=1.0, d=CATEGORIES, use_olh=True)
    clients: dict[str, Any] = {
        "DEClient": import_module(f"{room}.direct_encoding").DEClient(epsilon=1.0, d=CATEGORIES),
        "UEClient": unary(epsilon=1.0, d=CATEGORIES),
        "UEClient, use_oue": unary(epsilon=1.0, d=CATEGORIES, use_oue=True),
        "HEClient": import_module(f"{room}.histogram_encoding").HEClient(epsilon=1.0, d=CATEGORIES),
    }
    calls: dict[str, Callable[[int], Any]] = {
        name: lambda code, client=client: plain(client.privatise(code + 1))  # type: ignore[misc]
        for name, client in clients.items()
    }
    calls["LHClient, use_olh"] = lambda code: matches(*hashing.privatise(code + 1), buckets=hashing.g)
    yield from (Case(library="pure-ldp", what=name, claimed=1.0, report=call) for name, call in calls.items())


def multi_freq_ldpy() -> Iterator[Case]:
    """Yield the clients of multi-freq-ldpy: functions of a value, the number of values, and epsilon."""
    room, k = "multi_freq_ldpy.pure_frequency_oracles", CATEGORIES
    direct, unary, hashing, subset = (
        getattr(import_module(f"{room}.{name}"), f"{name}_Client") for name in ("GRR", "UE", "LH", "SS")
    )
    buckets = round(math.e) + 1
    calls: dict[str, Callable[[int], Any]] = {
        "GRR_Client": lambda code: int(direct(code, k, 1.0)),
        "UE_Client, optimal": lambda code: plain(unary(code, k, 1.0, optimal=True)),
        "UE_Client, not optimal": lambda code: plain(unary(code, k, 1.0, optimal=False)),
        "LH_Client, optimal": lambda code: matches(*hashing(code, k, 1.0, optimal=True), buckets=buckets),
        "SS_Client, as returned": lambda code: plain(subset(code, k, 1.0)),
        "SS_Client, sorted": lambda code: tuple(sorted(plain(subset(code, k, 1.0)))),
    }
    yield from (Case(library="multi-freq-ldpy", what=name, claimed=1.0, report=call) for name, call in calls.items())


def opendp() -> Iterator[Case]:
    """Yield measurements of OpenDP; each claims what its own privacy map says."""
    dp = import_module("opendp.prelude")
    dp.enable_features("contrib")
    names = [f"c{place}" for place in range(CATEGORIES)]
    truth = math.e / (math.e + CATEGORIES - 1)
    coin = dp.m.make_randomized_response_bool(prob=math.e / (1 + math.e))
    choice = dp.m.make_randomized_response(categories=names, prob=truth)
    real = dp.m.make_laplace(dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale=1.0)
    whole = dp.m.make_geometric(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=1.0)
    calls: dict[str, tuple[Any, Callable[[int], Any]]] = {
        "make_randomized_response_bool": (coin, lambda code: coin(bool(code))),
        "make_randomized_response": (choice, lambda code: choice(names[code])),
        "make_laplace": (real, lambda code: real(float(code))),
        "make_geometric": (whole, whole),
    }
    for name, (measurement, call) in calls.items():
        yield Case(library="opendp", what=name, claimed=measurement.map(1), report=call)


def plain(report: Any) -> Any:
    """Return a report in plain Python: an array as a tuple."""
    return tuple(report.tolist()) if hasattr(report, "tolist") else report


def matches(bucket: int, seed: int, *, buckets: int) -> tuple[bool, ...]:
    """Return whether the bucket is that of either value: what anybody computes from a report and its public hash."""
    digest = import_module("xxhash").xxh32
    return tuple(bool(bucket == digest(str(value), seed=seed).intdigest() % buckets) for value in (0, 1))


def main(trials: int) -> None:
    """Audit all cases there are, and print a table."""
    for name, cases in (("pure-ldp", pure_ldp), ("multi-freq-ldpy", multi_freq_ldpy), ("opendp", opendp)):
        try:
            release = version(name)
        except PackageNotFoundError:
            print(f"{name} is not installed: pip install {name}")
            continue
        for case in cases():
            found = case.audit(trials)
            verdict = "refuted" if found.refuted else "not refuted"
            shown = f"at least {found.epsilon.lower:.3f}"
            print(f"{name} {release:8} {case.what:30} claims {case.claimed:.3f}  {shown}  {verdict}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50_000)
