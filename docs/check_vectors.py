"""Check the test vectors without hushuffle: python check_vectors.py test-vectors.json (needs only `cryptography`).

Every mechanism is written down again from its definition. Small crowds are enumerated, dataset by dataset, so both ends
of a bracket are checked. In larger crowds of few reports the pair at the lower end is.
"""

from __future__ import annotations

import itertools
import json
import math
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

Law = Mapping[tuple[int, ...], float]
TOLERANCE = 1e-9
SMALL, FEW = 10, 200_000  # people in a crowd that is enumerated; releases of a pair that are
MOST, WIDEST = 1_000_000, 1000  # people; rows and columns of a matrix
BROKEN = (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError, RecursionError)


def matrix_of(described: Any) -> list[list[float]] | None:
    """Return the rows of a mechanism, from its definition; None where the file itself is the definition."""
    kind, e = described["kind"], math.exp(described.get("epsilon", 0.0))
    if kind == "target-sampling":
        e = (1 - described["sigma"]) * described["targets"] / described["sigma"] + 1
    if kind in {"randomized-response", "target-sampling"}:
        k = described.get("k") or described["targets"]
        return [[(e if x == y else 1) / (e + k - 1) for y in range(k)] for x in range(k)]
    if kind == "subset-selection":
        k, w = described["k"], described["w"]
        sets = list(itertools.combinations(range(k), w))
        whole = math.comb(k - 1, w - 1) * e + math.comb(k - 1, w)
        return [[(e if x in chosen else 1) / whole for chosen in sets] for x in range(k)]
    if kind == "unary-encoding":
        k = described["k"]
        q = 1 / (e + 1) if described["encoding"] == "optimized" else 1 / (math.exp(described["epsilon"] / 2) + 1)
        p = 0.5 if described["encoding"] == "optimized" else 1 - q
        ones = [[p if x == i else q for i in range(k)] for x in range(k)]
        places = list(itertools.product((0, 1), repeat=k))
        return [
            [math.prod(one if bit else 1 - one for one, bit in zip(row, bits, strict=True)) for bits in places]
            for row in ones
        ]
    if kind == "hadamard-response":
        outputs = 2 ** math.ceil(math.log2(described["k"] + 1))
        rows = range(1, described["k"] + 1)
        odd = [[(x & y).bit_count() % 2 for y in range(outputs)] for x in rows]
        return [[2 / outputs * (1 if differs else e) / (e + 1) for differs in row] for row in odd]
    if kind == "bit-flipping":
        width, p = described["width"], described["p"]
        flips = [[(x ^ y).bit_count() for y in range(2**width)] for x in range(2**width)]
        return [[p**h * (1 - p) ** (width - h) for h in row] for row in flips]
    return None


def add(law: Law, row: list[float]) -> Law:
    """Return the law of the counts of reports with one more report, which has the law `row`."""
    more = defaultdict[tuple[int, ...], float](float)
    for counts, chance in law.items():
        for y, probability in enumerate(row):
            if probability:
                more[(*counts[:y], counts[y] + 1, *counts[y + 1 :])] += chance * probability
    return more


def release(matrix: list[list[float]], values: Sequence[int], entry: Any) -> Law:
    """Return the law of the counts of what people with these values, and dummies, report."""
    law: Law = {(0,) * len(matrix[0]): 1.0}
    for row in [*(matrix[value] for value in values), *[entry["dummy_law"]] * entry["dummies"]]:
        law = add(law, row)
    return law


def binomial(n: int, p: float) -> dict[int, float]:
    """Return the law of the successes in n trials, without what is twelve deviations away."""
    reach = 12 * math.sqrt(n * p * (1 - p)) + 1
    near = range(max(0, math.floor(n * p - reach)), min(n, math.ceil(n * p + reach)) + 1)
    whole = math.lgamma(n + 1)
    return {
        u: math.exp(whole - math.lgamma(u + 1) - math.lgamma(n - u + 1) + u * math.log(p) + (n - u) * math.log(1 - p))
        for u in near
    }


def large_release(matrix: list[list[float]], others: list[int]) -> Law:
    """Return the same for many people, two kinds of reports and no dummies: a sum of two binomials."""
    law, n = defaultdict[tuple[int, ...], float](float), sum(others)
    parts = [binomial(count, row[1]) for count, row in zip(others, matrix, strict=True)]
    for (u, first), (v, second) in itertools.product(parts[0].items(), parts[1].items()):
        law[n - u - v, u + v] += first * second
    return law


def divergence(first: Law, second: Law, epsilon: float) -> float:
    """Return the hockey-stick divergence of two laws at epsilon."""
    factor = math.exp(epsilon)
    return math.fsum(max(0.0, chance - factor * second.get(counts, 0.0)) for counts, chance in first.items())


def large(entry: Any) -> bool:
    """Return whether many people send one of two reports, and nobody else anything."""
    return entry["n"] > SMALL and len(entry["matrix"]) == len(entry["matrix"][0]) == 2 and not entry["dummies"]


def pair_delta(matrix: list[list[float]], entry: Any, epsilon: float) -> float:
    """Return delta at epsilon of the pair that the file names."""
    counts = entry["worst_pair"]["others"]
    others = [x for x, count in enumerate(counts) for _ in range(count)]
    known = large_release(matrix, counts) if large(entry) else release(matrix, others, entry)
    one, other = (add(known, matrix[x]) for x in entry["worst_pair"]["target"])
    return divergence(one, other, epsilon)


def every_delta(matrix: list[list[float]], entry: Any, epsilon: float) -> float:
    """Return the largest delta at epsilon of all pairs of neighbouring datasets."""
    largest = 0.0
    for others in itertools.combinations_with_replacement(range(len(matrix)), entry["n"] - 1):
        known = release(matrix, others, entry)
        laws = [add(known, row) for row in matrix]
        largest = max(largest, *(divergence(one, other, epsilon) for one, other in itertools.permutations(laws, 2)))
    return largest


def releases(matrix: list[list[float]], entry: Any) -> int:
    """Return how many different releases there are."""
    reports, kinds = entry["n"] + entry["dummies"], len(matrix[0])
    return math.comb(reports + kinds - 1, kinds - 1)


def roughly(column: Sequence[float]) -> list[float]:
    """Return what columns are put in order by: rounding must not decide."""
    return [round(chance, 9) for chance in column]


def check_sizes(entry: Any) -> None:
    """Raise AssertionError unless an entry fits together, and is no more work than it should be."""
    matrix, others, described = entry["matrix"], entry["worst_pair"]["others"], entry["mechanism"]
    assert 2 <= len(matrix) <= WIDEST, "rows of the matrix"
    assert {len(row) for row in (*matrix, entry["dummy_law"])} == {len(matrix[0])}, "rows of one length"
    assert 2 <= len(matrix[0]) <= WIDEST, "columns of the matrix"
    assert all(0 <= chance <= 1 for row in (*matrix, entry["dummy_law"]) for chance in row), "probabilities"
    values = described.get("k", described.get("targets", len(matrix)))
    assert values == len(matrix) and described.get("width", 1) <= math.log2(len(matrix)), "rows for each value"  # noqa: PT018
    assert described["kind"] != "unary-encoding" or 2**values == len(matrix[0]), "columns for each report"
    assert 1 <= entry["n"] <= MOST and 0 <= entry["dummies"] <= MOST, "people and dummies"  # noqa: PT018
    assert sum(others) == entry["n"] - 1 and all(count >= 0 for count in others), "the others are n - 1 people"  # noqa: PT018
    assert len(others) <= len(matrix) and all(0 <= x < len(matrix) for x in entry["worst_pair"]["target"]), "values"  # noqa: PT018
    assert 0 < entry["delta"] < 1, "delta"
    assert entry["n"] > SMALL or releases(matrix, entry) <= FEW, "too many releases to enumerate"


def check_bracket(entry: Any) -> str:
    """Return what was checked of a bracket, or raise AssertionError."""
    check_sizes(entry)
    matrix, delta = entry["matrix"], entry["delta"]
    lower, upper = entry["epsilon"]
    assert all(abs(math.fsum(row) - 1) < TOLERANCE for row in [*matrix, entry["dummy_law"]]), "rows sum to 1"
    again = matrix_of(entry["mechanism"])
    if again is not None:
        # The names of reports do not matter: columns are compared in order of their numbers.
        ours, theirs = (sorted(zip(*rows, strict=True), key=roughly) for rows in (again, matrix))
        both = zip(itertools.chain(*ours), itertools.chain(*theirs), strict=True)
        assert all(math.isclose(a, b, rel_tol=TOLERANCE) for a, b in both), "the matrix is not that of the mechanism"
    ratios = [a / b for column in zip(*matrix, strict=True) for a, b in itertools.permutations(column, 2) if b]
    assert math.isclose(math.log(max(ratios)), entry["local_epsilon"], rel_tol=1e-6), "local epsilon"
    assert 0 <= lower <= upper <= entry["local_epsilon"] * (1 + TOLERANCE), "order of the ends"
    if entry["n"] > SMALL and releases(matrix, entry) * entry["n"] > FEW and not large(entry):
        return "ends in order"
    assert pair_delta(matrix, entry, lower * (1 - TOLERANCE)) >= delta * (1 - 1e-6), "the lower end is not attained"
    if entry["n"] > SMALL:
        return "worst pair"
    assert every_delta(matrix, entry, upper) <= delta * (1 + 1e-6), "the upper end does not hold"
    return "all datasets"


class Stream:
    """The words of one record: halves of AES-256 blocks of (record, counter), under a key derived for the round."""

    def __init__(self, key: bytes, record: int, number: int) -> None:
        info = b"hushuffle keyed records 1, round " + str(number).encode()
        derived = HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=info).derive(key)
        self._cipher = Cipher(algorithms.AES(derived), modes.ECB()).encryptor()  # noqa: S305
        self._record, self._counter = record, 0

    def word(self) -> int:
        """Return the next word, 64 bits."""
        block = self._record.to_bytes(8, "little") + self._counter.to_bytes(8, "little")
        self._counter += 1
        return int.from_bytes(self._cipher.update(block)[:8], "little")

    def coin(self, threshold: int) -> bool:
        """Return a coin of probability threshold / 2**64."""
        return self.word() < threshold

    def integer(self, high: int) -> int:
        """Return a uniform integer below `high`."""
        if high & (high - 1) == 0:
            return self.word() >> (64 - (high.bit_length() - 1))
        while high <= 2**32:
            product = (self.word() & 0xFFFFFFFF) * high
            if product & 0xFFFFFFFF >= (2**32 - high) % high:
                return product >> 32
        while True:
            number = self.word() >> (64 - high.bit_length())
            if number < high:
                return number


def draw(stream: Stream, asked: Any, value: int) -> int | bool:
    """Return what one record draws."""
    if asked["draw"] == "coins":
        return stream.coin(asked["threshold"])
    if asked["draw"] == "integers":
        return stream.integer(asked["high"])
    k, honest = asked["mechanism"]["k"], stream.coin(asked["threshold"])
    if asked["mechanism"]["kind"] == "randomized-response":
        other = stream.integer(k)
        return value if honest else other
    row, report = value + 1, stream.integer(2 ** math.ceil(math.log2(k + 1)))
    return report ^ (row & -row) if honest and (row & report).bit_count() % 2 else report


def check_sampler(asked: Any, key: bytes, records: list[int], number: int) -> None:
    """Raise AssertionError if anything else is drawn."""
    streams = [Stream(key, record, number) for record in records]
    assert streams, "no records"
    if asked["draw"] == "words":
        assert asked["times"] == len(asked["drawn"]) > 0, "words: as many as are said"
        drawn: list[Any] = [[stream.word() for stream in streams] for _ in range(asked["times"])]
    else:
        values = asked.get("values", records)
        drawn = [draw(stream, asked, value) for stream, value in zip(streams, values, strict=True)]
    assert drawn == asked["drawn"], f"{asked['draw']}: {drawn}"


def read(file: str) -> Any:
    """Return the brackets and the samplers of a file, or raise AssertionError."""

    def refuse(constant: str) -> None:
        message = f"{constant} is no number"
        raise ValueError(message)

    try:
        document = json.loads(Path(file).read_text(encoding="utf-8"), parse_constant=refuse)
        brackets, samplers = document["brackets"], document["samplers"]
        key = bytes.fromhex(samplers["key"])
        draws, records, number = samplers["draws"], samplers["records"], samplers["round"]
    except (OSError, *BROKEN) as error:
        message = f"{file} is no file of test vectors ({type(error).__name__}: {str(error)[:200]})"
        raise AssertionError(message) from None
    assert isinstance(brackets, list), "brackets are a list"
    assert isinstance(draws, list), "draws are a list"
    assert brackets, "there are no brackets"
    assert draws, "there are no draws"
    return brackets, draws, key, records, number


def main(file: str) -> int:
    """Check a whole file; return the exit code."""
    wrong, counted = list[str](), defaultdict[str, int](int)

    def tried(what: str, check: Callable[[], str]) -> None:
        try:
            counted[check()] += 1
        except AssertionError as error:
            wrong.append(f"{what}: {error}")
        except BROKEN as error:
            wrong.append(f"{what}: it is no entry ({type(error).__name__})")

    try:
        brackets, draws, key, records, number = read(file)
    except AssertionError as error:
        print(error)  # noqa: T201
        return 1
    for place, entry in enumerate(brackets):
        tried(f"bracket {place}", lambda entry=entry: check_bracket(entry))  # type: ignore[misc]
    for place, asked in enumerate(draws):
        tried(f"draw {place}", lambda asked=asked: check_sampler(asked, key, records, number) or "draws")  # type: ignore[misc,func-returns-value]
    print(", ".join(f"{what}: {count}" for what, count in sorted(counted.items())))  # noqa: T201
    print("\n".join(wrong) or "nothing is wrong")  # noqa: T201
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("python check_vectors.py test-vectors.json")
    sys.exit(main(sys.argv[1]))
