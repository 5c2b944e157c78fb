"""Bits, sets and Hadamard rows beside two libraries, and a million reports: python benchmarks/unary_encoding.py.

Randomizing and estimating, on the same values: seconds, and as ratios to sorting 10^7 floats in the same run. The error
is the mean square one over all values, over what theory says of an unbiased estimate. Ours draws from a cryptographic
generator, the others from `random` and `numpy.random`. They are passed over if they are not installed. multi-freq-ldpy
cuts estimates below 0 and divides by their sum: a small error on rare values for a bias on frequent ones.
"""

from __future__ import annotations

import argparse
import importlib
import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import hushuffle as hs
from hushuffle.estimation import predicted_standard_error

PEOPLE, VALUES = 10**6, 1000
FEW_PEOPLE, FEW_VALUES, REPETITIONS = 5000, 100, 5
EPSILON = 1.0  # up to here pure-ldp has the Hadamard response that is meant

Run = Callable[[Any], Any]
"""From values to estimated frequencies."""


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def protocol_of(randomizer: Any, n: int) -> hs.Protocol:
    return hs.Protocol(randomizer=randomizer, shuffler=hs.NoShuffle(), n=n)


def ours(randomizer: Any) -> Run:
    def run(values: Any) -> Any:
        protocol = protocol_of(randomizer, values.size)
        return hs.estimate(protocol.collect(values, rng=hs.secure()), protocol=protocol).raw

    return run


def pure_ldp(module: str, name: str, **options: Any) -> Run:
    def run(values: Any) -> Any:
        oracle = importlib.import_module(f"pure_ldp.frequency_oracles.{module}")

        def index(value: int) -> int:
            return value

        server = getattr(oracle, f"{name}Server")(EPSILON, FEW_VALUES, index_mapper=index, **options)
        hashes = {"hash_funcs": server.get_hash_funcs()} if hasattr(server, "get_hash_funcs") else {}
        client = getattr(oracle, f"{name}Client")(EPSILON, FEW_VALUES, index_mapper=index, **options, **hashes)
        for value in values.tolist():
            server.aggregate(client.privatise(value))
        return np.array([server.estimate(value, suppress_warnings=True) for value in range(FEW_VALUES)]) / values.size

    return run


def multi_freq_ldpy(module: str, client: tuple[Any, ...], server: tuple[Any, ...]) -> Run:
    def run(values: Any) -> Any:
        oracle = importlib.import_module(f"multi_freq_ldpy.pure_frequency_oracles.{module}")
        send, collect = (getattr(oracle, f"{module}_{part}") for part in ("Client", "Aggregator_MI"))
        return collect([send(value, FEW_VALUES, *client) for value in values.tolist()], *server)

    return run


def sides() -> list[tuple[str, Any, dict[str, Run]]]:
    """Return name, our mechanism, and what others have of it."""
    k = FEW_VALUES
    found: list[tuple[str, Any, dict[str, Run]]] = []
    for kind in ("symmetric", "optimized"):
        best = kind == "optimized"
        others = {
            "pure-ldp": pure_ldp("unary_encoding", "UE", use_oue=best),
            "multi-freq-ldpy": multi_freq_ldpy("UE", (EPSILON, best), (EPSILON, best)),
        }
        found.append((f"unary encoding, {kind}", hs.UnaryEncoding(k=k, epsilon=EPSILON, encoding=kind), others))
    sets = hs.SubsetSelection(k=k, w=round(k / (math.e + 1)), epsilon=EPSILON)
    found.append(("subset selection", sets, {"multi-freq-ldpy": multi_freq_ldpy("SS", (EPSILON,), (k, EPSILON))}))
    rows = hs.HadamardResponse(k=k, epsilon=EPSILON)
    found.append(("Hadamard response", rows, {"pure-ldp": pure_ldp("hadamard_response", "HadamardResponse")}))
    return found


def population(n: int, k: int) -> Any:
    """Return n values of which the x-th is proportional to 1/x."""
    weights = 1 / np.arange(1, k + 1)
    return np.random.default_rng(1).choice(k, n, p=weights / weights.sum())


def compare(randomizer: Any, others: dict[str, Run], unit: float) -> None:
    """Print seconds and errors of every library on the same values."""
    values = population(FEW_PEOPLE, FEW_VALUES)
    shares = np.bincount(values, minlength=FEW_VALUES) / FEW_PEOPLE
    spread = predicted_standard_error(protocol_of(randomizer, FEW_PEOPLE), frequency=shares)
    for name, run in {"hushuffle": ours(randomizer), **others}.items():
        try:
            run(values[:10])  # compiles and warms up
            results = [timed(lambda run=run: run(values)) for _ in range(REPETITIONS)]  # type: ignore[misc]
        except ImportError as error:
            print(f"  {name:<18}not installed ({error.name}): passed over")
            continue
        seconds = statistics.median(took for took, _ in results)
        wrong = np.array([found - shares for _, found in results])
        loss = float(np.mean(wrong**2)) / float(np.mean(spread**2))
        scatter = float(spread[0]) / math.sqrt(REPETITIONS)
        print(
            f"  {name:<18}{seconds:>9.4f}{seconds / unit:>9.4f}{loss:>14.3f}"
            f"{float(np.mean(wrong[:, 0])) / scatter:>+14.1f}"
        )


def million(unit: float) -> None:
    """Print the seconds that a million reports of a thousand values take."""
    values = population(PEOPLE, VALUES)
    mechanisms = (
        hs.UnaryEncoding(k=VALUES, epsilon=EPSILON, encoding="symmetric"),
        hs.UnaryEncoding(k=VALUES, epsilon=EPSILON, encoding="optimized"),
        hs.HadamardResponse(k=VALUES, epsilon=EPSILON),
    )
    for randomizer in mechanisms:
        drawing, reports = timed(lambda one=randomizer: one.randomize(values, rng=hs.secure()))  # type: ignore[misc]
        counting, _ = timed(lambda one=randomizer, these=reports: one.counts(these))  # type: ignore[misc]
        print(
            f"{randomizer}: randomize {drawing:.2f} s ({drawing / unit:.2f} units), count {counting:.2f} s "
            f"({counting / unit:.2f} units), {reports.nbytes / 1e6:.0f} MB",
            flush=True,
        )


def main() -> None:
    argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]).parse_args()
    floats = np.random.default_rng(0).random(10**7)
    unit = statistics.median(timed(lambda: np.sort(floats))[0] for _ in range(3))
    print(f"sorting 10^7 floats: {unit:.3f} s (the unit of time)\n\nn = {PEOPLE:,}, k = {VALUES:,}")
    million(unit)
    print(f"\nn = {FEW_PEOPLE:,}, k = {FEW_VALUES}, epsilon_0 = {EPSILON:g}, {REPETITIONS} repetitions")
    print(f"  {'':<18}{'seconds':>9}{'units':>9}{'error/theory':>14}{'largest, in standard errors':>30}")
    for name, randomizer, others in sides():
        print(name)
        compare(randomizer, others, unit)


if __name__ == "__main__":
    main()
