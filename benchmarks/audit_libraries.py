"""Audit local randomizers of other libraries: what they claim, what trials show, and what replay shows.

    python benchmarks/audit_libraries.py [--trials 10000] [--repeat 3]   prints the table
    python benchmarks/audit_libraries.py --write                        writes it into the page

Every client is called as its documentation calls it, for one report at a time or for a column, at five settings. A
library that is not installed is named and left out. The page is docs/reference/audited-libraries.md.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import MagicMock

import numpy as np

from hushuffle.attacks.audit import audit_sampler
from hushuffle.attacks.measured import Measurement
from hushuffle.attacks.replay import differences
from hushuffle.errors import InvalidInputError

SETTINGS = ((2, 1.0), (8, 0.5), (8, 1.0), (8, 2.0), (64, 1.0))
"""Number of values, and the epsilon that is asked for."""
CONFIDENCE = 1 - 0.05 / 1000
"""Fewer than a thousand audits share the probability of a false alarm, 0.05."""
PARTS_OF_NPRR = ("", ".betting", ".betting_strategies", ".boundaries", ".conjmix_bounded")
"""Modules of confseq, which nprr imports for its confidence sequences only."""
PAGE = Path(__file__).parent.parent / "docs" / "reference" / "audited-libraries.md"


@dataclass(frozen=True, kw_only=True)
class Case:
    """One client: what is called, what it claims, and one report for a code; or reports for a whole column of codes;
    `replayed` has the reports of a column for the test by replay only.

    `proven` is the epsilon that follows from the probabilities in its source; None: that of the claim.
    """

    library: str
    what: str
    claimed: float
    report: Callable[[int], Any] = field(default=lambda code: code)
    column: Callable[[Sequence[int]], Any] | None = None
    replayed: Callable[[Sequence[int]], Any] | None = None
    values: tuple[int, int] = (0, 1)
    proven: float | None = None

    def audit(self, trials: int) -> Measurement:
        """Return what `trials` reports, half of either value, show."""

        def sample(codes: Any) -> list[Any]:
            held = [self.values[code] for code in codes.tolist()]
            return list(self.column(held)) if self.column else [self.report(code) for code in held]

        return audit_sampler(sample, (0, 1), claimed=self.claimed, trials=trials, confidence=CONFIDENCE)

    def replay(self, k: int) -> str:
        """Return whether equal randomness and one changed record change other reports, or why this is not known."""

        def collect(records: Any, _: Any) -> Any:
            if whole := self.replayed or self.column:
                return list(whole(records))
            reports = []
            for place, record in enumerate(records):
                random.seed(place)
                np.random.seed(place)  # noqa: NPY002 - theirs
                reports.append(self.report(record))
            return reports

        records = [*range(k), 0, 0]
        try:
            changes = list(differences(collect, records, values=self.values, positions=range(k + 2), keys=2))
        except InvalidInputError:
            return "own randomness"
        except ValueError:
            return "refuses"
        return "leak" if any(len(change.reports) > 1 or change.parts for change in changes) else "passes"


def pure_ldp(k: int, epsilon: float) -> Iterator[Case]:
    """Yield the clients of pure-ldp: `client.privatise(item)`, items from 1, hashed as numbers from 0."""
    core, room = import_module("pure_ldp.core"), import_module("pure_ldp.frequency_oracles")
    hashing = room.LHClient(epsilon=epsilon, d=k, use_olh=True)
    hashes = core.generate_hash_funcs(4, 16)
    signs = list(zip(core.generate_hash_funcs(4, 16), core.generate_hash_funcs(4, 2), strict=True))
    cohorts = [core.generate_hash_funcs(2, 16)] * 2
    noise = 1 / (0.5 * math.exp(epsilon / 4) + 0.5)  # two hash functions
    hadamard = room.HadamardResponseServer(epsilon=epsilon, d=k)
    clients: dict[str, Any] = {
        "DEClient": room.DEClient(epsilon=epsilon, d=k),
        "UEClient": room.UEClient(epsilon=epsilon, d=k),
        "UEClient, use_oue": room.UEClient(epsilon=epsilon, d=k, use_oue=True),
        "HEClient": room.HEClient(epsilon=epsilon, d=k),
        "HadamardResponseClient": room.HadamardResponseClient(epsilon, k, hadamard.get_hash_funcs()),
        "HadamardMechClient": room.HadamardMechClient(epsilon, k, 1),
        "CMSClient": room.CMSClient(epsilon, hashes, 16),
        "CMSClient, is_hadamard": room.CMSClient(epsilon, hashes, 16, is_hadamard=True),
        "PCSClient": room.PCSClient(epsilon, 4, 16, signs),
        "RAPPORClient, 2 hashes": room.RAPPORClient(noise, 16, cohorts, num_of_cohorts=2),
    }
    for name, client in clients.items():
        proven = math.inf if name.startswith("RAPPOR") else None
        report = lambda code, client=client: plain(client.privatise(code + 1))  # noqa: E731
        yield Case(library="pure-ldp", what=name, claimed=epsilon, report=report, proven=proven)  # type: ignore[arg-type]
    report = lambda code: matches(*hashing.privatise(code + 1), buckets=hashing.g)  # noqa: E731
    yield Case(library="pure-ldp", what="LHClient, use_olh", claimed=epsilon, report=report)


def multi_freq_ldpy(k: int, epsilon: float) -> Iterator[Case]:
    """Yield the clients of multi-freq-ldpy: functions of a value, the number of values, and epsilon."""

    def client(room: str, name: str) -> Any:
        return getattr(import_module(f"multi_freq_ldpy.{room}.{name}"), f"{name}_Client")

    direct, unary, hashing, subset, noisy, adaptive = (
        client("pure_frequency_oracles", name) for name in ("GRR", "UE", "LH", "SS", "HE", "ADP")
    )
    buckets, twice = round(math.exp(epsilon)) + 1, 2 * epsilon
    calls: dict[str, Callable[[int], Any]] = {
        "GRR_Client": lambda code: int(direct(code, k, epsilon)),
        "UE_Client, optimal": lambda code: plain(unary(code, k, epsilon, optimal=True)),
        "UE_Client, not optimal": lambda code: plain(unary(code, k, epsilon, optimal=False)),
        "LH_Client, optimal": lambda code: matches(*hashing(code, k, epsilon, optimal=True), buckets=buckets),
        "SS_Client, as returned": lambda code: plain(subset(code, k, epsilon)),
        "SS_Client, sorted": lambda code: tuple(sorted(plain(subset(code, k, epsilon)))),
        "HE_Client": lambda code: plain(noisy(code, k, epsilon)),
        "ADP_Client": lambda code: plain(adaptive(code, k, epsilon)),
    }
    for name in ("L_GRR", "L_OUE", "L_OSUE", "L_SUE", "L_SOUE"):
        room = client("long_freq_est", name)
        calls[f"{name}_Client, first report"] = lambda code, room=room: plain(room(code, k, twice, epsilon))  # type: ignore[misc]
    bits = client("long_freq_est", "dBitFlipPM")
    calls["dBitFlipPM_Client, 2 bits"] = lambda code: plain(bits(code, k, k, 2, epsilon))
    chosen = max(1, round(k / (math.exp(epsilon) + 1)))
    for name, call in calls.items():
        proven = math.inf if name == "SS_Client, as returned" and chosen > 1 else None
        yield Case(library="multi-freq-ldpy", what=name, claimed=epsilon, report=call, proven=proven)


def ldp_toolbox(k: int, epsilon: float) -> Iterator[Case]:
    """Yield the protocols of ldp-toolbox: `Protocol(k, epsilon).obfuscate(value)`."""
    room = "ldp_toolbox.protocols.frequency"
    names = {"grr": "GeneralizedRandomizedResponse", "ue": "UnaryEncoding", "ss": "SubsetSelection"}
    names |= {"he": "HistogramEncoding"}
    for file, name in names.items():
        protocol = getattr(import_module(f"{room}.{file}"), name)(k, epsilon)
        report = lambda code, protocol=protocol: plain(protocol.obfuscate(code))  # noqa: E731
        yield Case(library="ldp-toolbox", what=name, claimed=epsilon, report=report)  # type: ignore[arg-type]
    hashing = import_module(f"{room}.lh").LocalHashing(k, epsilon)
    report = lambda code: matches(*hashing.obfuscate(code), buckets=hashing.g)  # noqa: E731
    yield Case(library="ldp-toolbox", what="LocalHashing", claimed=epsilon, report=report)


def trasgodp(k: int, epsilon: float) -> Iterator[Case]:
    """Yield the functions of trasgoDP on arrays. They take the categories from the array: all k are added and cut."""
    room = import_module("trasgodp.categorical")
    names = np.array([f"c{place:02}" for place in range(k)])
    response = room.dp_randomized_response_binary_array if k == 2 else room.dp_randomized_response_kary_array
    for what, call in {response.__name__: response, "dp_exponential_array": room.dp_exponential_array}.items():

        def column(codes: Sequence[int], call: Callable[..., Any] = call) -> Any:
            return call(np.concatenate([names[list(codes)], names]), epsilon)[: len(codes)].tolist()

        yield Case(library="trasgodp", what=f"{what}, all categories present", claimed=epsilon, column=column)
        others = names[[0, *range(2, k)]]

        def seen(code: int, call: Callable[..., Any] = call, others: Any = others) -> bool:
            """Whether any report is the second category, which only this person may hold."""
            return bool((call(np.append(others, names[code]), epsilon) == names[1]).any())

        def whole(codes: Sequence[int], call: Callable[..., Any] = call) -> Any:
            return call(names[list(codes)], epsilon).tolist()

        alone = Case(library="trasgodp", what=what, claimed=epsilon, report=seen, replayed=whole, proven=math.inf)
        yield replace(alone, what=f"{what}, a category of one person")


def nprr(k: int, epsilon: float) -> Iterator[Case]:
    """Yield the mechanisms of nprr, for numbers from 0 to 1 on a grid of `k` values."""
    vars(np).setdefault("float_", np.float64)  # its annotations name a type of numpy 1
    sys.modules.update(
        {f"confseq{part}": MagicMock() for part in PARTS_OF_NPRR}
    )  # only its confidence sequences need this
    room = import_module("nprr.mechanisms")
    steps = k - 1
    truth = room.r_from_G_eps(steps, epsilon)
    yield Case(
        library="nprr",
        what="nprr(x, r_from_G_eps(G, eps), G)",
        claimed=epsilon,
        column=lambda codes: room.nprr(np.minimum(codes, 1.0), truth, steps).tolist(),
        proven=math.log(1 + 2 * steps * truth / (1 - truth)),
    )
    yield Case(
        library="nprr",
        what="laplace(x, eps)",
        claimed=epsilon,
        column=lambda codes: room.laplace(np.minimum(codes, 1.0), epsilon).tolist(),
    )


def insurance_fairness_ldp(k: int, epsilon: float) -> Iterator[Case]:
    """Yield `privatise(values, epsilon, categories)`."""
    names = [f"c{place:02}" for place in range(k)]
    call = import_module("insurance_fairness_ldp").privatise
    column = lambda codes: call(np.array(names)[list(codes)], epsilon, names).tolist()  # noqa: E731
    yield Case(library="insurance-fairness-ldp", what="privatise", claimed=epsilon, column=column)


def diffprivlib(k: int, epsilon: float) -> Iterator[Case]:
    """Yield mechanisms of diffprivlib that a device can use on its own value: `mechanism.randomise(value)`."""
    room = import_module("diffprivlib.mechanisms")
    binary = room.Binary(epsilon=epsilon, value0="0", value1="1")
    yield Case(
        library="diffprivlib", what="Binary", claimed=epsilon, report=lambda code: binary.randomise(str(min(code, 1)))
    )
    most = k - 1
    bounds = {"sensitivity": most, "lower": 0, "upper": most}
    mechanisms = {
        "GeometricTruncated": room.GeometricTruncated(epsilon=epsilon, **bounds),
        "LaplaceTruncated": room.LaplaceTruncated(epsilon=epsilon, **bounds),
        "LaplaceBoundedDomain": room.LaplaceBoundedDomain(epsilon=epsilon, **bounds),
        "Staircase": room.Staircase(epsilon=epsilon, sensitivity=most),
    }
    for name, mechanism in mechanisms.items():
        whole = name.startswith("Geometric")
        report = lambda code, own=mechanism, whole=whole: own.randomise(code if whole else float(code))  # noqa: E731
        yield Case(library="diffprivlib", what=name, claimed=epsilon, report=report, values=(0, most))  # type: ignore[arg-type]


def opendp(k: int, epsilon: float) -> Iterator[Case]:
    """Yield measurements of OpenDP; each claims what its own privacy map says."""
    dp = import_module("opendp.prelude")
    dp.enable_features("contrib")
    names = [f"c{place}" for place in range(k)]
    grown = math.exp(epsilon)
    coin = dp.m.make_randomized_response_bool(prob=grown / (1 + grown))
    choice = dp.m.make_randomized_response(categories=names, prob=grown / (grown + k - 1))
    real = dp.m.make_laplace(dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale=1 / epsilon)
    whole = dp.m.make_geometric(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=1 / epsilon)
    calls: dict[str, tuple[Any, Callable[[int], Any]]] = {
        "make_randomized_response_bool": (coin, lambda code: coin(bool(code))),
        "make_randomized_response": (choice, lambda code: choice(names[code])),
        "make_laplace": (real, lambda code: real(float(code))),
        "make_geometric": (whole, whole),
    }
    for name, (measurement, call) in calls.items():
        yield Case(library="opendp", what=name, claimed=measurement.map(1), report=call)


LIBRARIES: dict[str, Callable[[int, float], Iterator[Case]]] = {
    "pure-ldp": pure_ldp,
    "multi-freq-ldpy": multi_freq_ldpy,
    "ldp-toolbox": ldp_toolbox,
    "trasgodp": trasgodp,
    "nprr": nprr,
    "insurance-fairness-ldp": insurance_fairness_ldp,
    "diffprivlib": diffprivlib,
    "opendp": opendp,
}


def plain(report: Any) -> Any:
    """Return a report in plain Python: arrays and their parts as one flat tuple."""
    if hasattr(report, "tolist"):
        return plain(report.tolist())
    if not isinstance(report, (tuple, list, zip)):
        return report
    parts = [plain(part) for part in report]
    return tuple(number for part in parts for number in (part if isinstance(part, tuple) else (part,)))


def matches(bucket: int, seed: int, *, buckets: int) -> tuple[bool, ...]:
    """Return whether the bucket is that of either value: what anybody computes from a report and its public hash."""
    digest = import_module("xxhash").xxh32
    return tuple(bool(bucket == digest(str(value), seed=seed).intdigest() % buckets) for value in (0, 1))


def rows(name: str, trials: int, repeat: int) -> Iterator[tuple[str, ...]]:
    """Yield a row for each client of a library: its call, the figures at the settings, replay, and the verdict."""
    found: dict[str, list[str]] = {}
    refuted: dict[str, bool] = {}
    replayed: dict[str, str] = {}
    for k, epsilon in SETTINGS:
        for case in LIBRARIES[name](k, epsilon):
            what = case.what.replace("_binary_array", "_kary_array")
            try:
                measured = [case.audit(trials) for _ in range(repeat)]
            except Exception as error:  # noqa: BLE001 - theirs may be any
                found.setdefault(what, []).append("refuses" if isinstance(error, ValueError) else "fails")
                refuted.setdefault(what, False)
            else:
                lower = median(each.epsilon.lower for each in measured)
                always = all(each.refuted for each in measured)
                known = case.proven is not None and case.proven > 1.001 * case.claimed
                proven = f" (true ε {case.proven:.2f})".replace("inf", "∞") if known else ""
                found.setdefault(what, []).append(f"{lower:.2f}{'!' if always else ''}{proven}")
                refuted[what] = refuted.get(what, False) or always
            if (k, epsilon) == (8, 1.0):
                replayed[what] = case.replay(k)
    for what, figures in found.items():
        verdict = "refuted" if refuted[what] else "not refuted"
        yield (f"`{what}`", *figures, replayed.get(what, ""), verdict)


HEADING = ["client", *(f"k = {k}, ε = {epsilon:g}" for k, epsilon in SETTINGS), "replay", "verdict"]


def table(found: Sequence[tuple[str, ...]]) -> list[str]:
    """Return the lines of a table."""
    return [f"| {' | '.join(row)} |" for row in (HEADING, ["---"] * len(HEADING), *found)]


def summary(found: Mapping[str, Sequence[tuple[str, ...]]]) -> list[str]:
    """Return the lines of the page: a table of the refuted clients, and the names of the others."""
    refuted = [(f"{name}: {row[0]}", *row[1:]) for name, own in found.items() for row in own if row[-1] == "refuted"]
    lines = ["", *table(refuted), "", "Not refuted at any setting:", ""]
    for name, own in found.items():
        passed = [f"{row[0]}{'' if row[-2] != 'passes' else '*'}" for row in own if row[-1] != "refuted"]
        lines.append(f"- **{name}**: {', '.join(passed)}.")
    return [*lines, "", "An asterisk marks clients that pass replay.", ""]


def main(trials: int, repeat: int, *, write: bool, only: str | None = None) -> None:
    """Audit all clients there are and print a table for each library; write the summary into the page if asked."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for name in [only] if only else LIBRARIES:
        try:
            release = f"{name} {version(name)}"
        except PackageNotFoundError:
            print(f"{name} is not installed: pip install {name}")
            continue
        found[release] = list(rows(name, trials, repeat))
        print("\n".join(["", f"**{release}**", "", *table(found[release])]), flush=True)
    if write:
        start, end = "<!-- tables -->", "<!-- end of tables -->"
        text = PAGE.read_text(encoding="utf-8")
        before, after = text.partition(start)[0], text.partition(end)[2]
        PAGE.write_text(f"{before}{start}\n" + "\n".join(summary(found)) + f"\n{end}{after}", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Audit local randomizers of other libraries.")
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", choices=LIBRARIES)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    main(given.trials, given.repeat, write=given.write, only=given.only)
