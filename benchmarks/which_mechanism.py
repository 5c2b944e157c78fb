"""Which mechanism at the same central epsilon: python benchmarks/which_mechanism.py [--write].

For each mechanism the largest local epsilon whose certified central epsilon (upper end) meets the target; then the
standard error of a rare value in units of the central Gaussian mechanism's, and the bits of a report.
`--write` writes the table of docs/explanation/which-mechanism.md and its picture. Takes a few minutes.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any

import hushuffle as hs
from hushuffle.estimation import predicted_standard_error

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "explanation" / "which-mechanism.md"
DELTA = 1e-6
CELLS = ((10_000, 10, 0.1), (1_000_000, 100, 0.1), (1_000_000, 100, 1.0))
"""People, values, central epsilon."""

DRAWN = (100_000, 100, (0.03, 0.1, 0.3, 1.0))
"""The same for the picture."""

BUCKETS = (16, 256, 4096, 65_536)

Build = Callable[[int, float], Any]
"""From the number of values and a local epsilon to a mechanism."""


def hashing(g: int) -> Build:
    return lambda k, epsilon: hs.LocalHashing(k=k, g=g, epsilon=epsilon, family="binary")


def encoding(kind: Any) -> Build:
    return lambda k, epsilon: hs.UnaryEncoding(k=k, epsilon=epsilon, encoding=kind)


MECHANISMS: Mapping[str, tuple[Build, ...]] = {
    "randomized response": (lambda k, epsilon: hs.RandomizedResponse(k=k, epsilon=epsilon),),
    "local hashing, many buckets": tuple(hashing(g) for g in BUCKETS),
    "subset selection": (
        lambda k, epsilon: hs.SubsetSelection(k=k, w=hs.SubsetSelection.best_w(k, epsilon), epsilon=epsilon),
    ),
    "unary encoding, optimized": (encoding("optimized"),),
    "unary encoding, symmetric": (encoding("symmetric"),),
    "Hadamard response": (lambda k, epsilon: hs.HadamardResponse(k=k, epsilon=epsilon),),
}
"""Of several the most accurate counts."""


@dataclass(frozen=True)
class Row:
    """What one mechanism does: its local epsilon, its error over the central mechanism's, bits of a report."""

    local: float
    error: float
    bits: int
    randomizer: Any

    @property
    def cells(self) -> str:
        """Its cells in the table."""
        return f"{self.error:.2f} | {self.local:.2f} | {self.bits:,}"


def central_error(n: int, epsilon: float, delta: float) -> float:
    """Return the standard error of a share released with Gaussian noise of the exact size for (epsilon, delta).

    A histogram changes by 1 in two places (Balle, Wang 2018, Theorem 8).
    """
    normal, step = NormalDist(), math.sqrt(2)

    def spent(sigma: float) -> float:
        near, far = step / (2 * sigma) - epsilon * sigma / step, -step / (2 * sigma) - epsilon * sigma / step
        return normal.cdf(near) - math.exp(epsilon) * normal.cdf(far)

    low, high = 1e-3, 1e6
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if spent(middle) <= delta else (middle, high)
    return high / n


def survey(randomizer: Any, n: int) -> hs.Protocol:
    return hs.Protocol(randomizer=randomizer, shuffler=hs.UniformShuffle(), n=n)


def local_epsilon(build: Build, n: int, k: int, epsilon: float) -> Any:
    """Return the mechanism with the largest local epsilon that meets the target; what it chooses itself settles."""
    randomizer = build(k, 1.0)
    for _ in range(8):
        found = hs.dp.calibrate(survey(randomizer, n), parameter="epsilon", epsilon=epsilon, delta=DELTA)
        chosen = found.protocol.randomizer
        randomizer = build(k, chosen.epsilon)
        if randomizer == chosen:
            break
    return chosen


def bits(randomizer: Any) -> int:
    """Return the bits of a report; of a set, those that number all sets of its size."""
    if isinstance(randomizer, hs.SubsetSelection):
        return math.ceil(math.log2(math.comb(randomizer.k, randomizer.w)))
    return sum((limit - 1).bit_length() for limit in randomizer.layout.limits)


def row(name: str, n: int, k: int, epsilon: float) -> Row:
    unit = central_error(n, epsilon, DELTA)
    found = []
    for build in MECHANISMS[name]:
        randomizer = local_epsilon(build, n, k, epsilon)
        error = float(predicted_standard_error(survey(randomizer, n), frequency=0.0)) / unit
        found.append(Row(local=randomizer.local_epsilon, error=error, bits=bits(randomizer), randomizer=randomizer))
    return min(found, key=lambda one: one.error)


def table() -> Iterator[str]:
    """Yield the lines of the table, one for each mechanism and cell."""
    for n, k, epsilon in CELLS:
        for name in MECHANISMS:
            yield f"| {n:,} | {k:,} | {epsilon:g} | {name} | {row(name, n, k, epsilon).cells} |"


def draw() -> None:
    """Draw error against central epsilon."""
    spec = importlib.util.spec_from_file_location("picture", ROOT / "docs" / "picture.py")
    assert spec is not None
    assert spec.loader is not None
    picture = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(picture)
    n, k, targets = DRAWN
    rows = [
        {"x": epsilon, "y": row(name, n, k, epsilon).error, "label": name} for name in MECHANISMS for epsilon in targets
    ]
    title = f"{n:,} people, {k} values, delta = {DELTA:g}: error of a rare value at the same central epsilon"
    error = "over that of the central Gaussian mechanism"
    picture.save("which-mechanism.svg", title, "central epsilon (certified)", error, rows, x_log=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the table of the page, and the picture")
    write = parser.parse_args().write
    lines = []
    for line in table():
        print(line, flush=True)
        lines.append(line)
    if write:
        head, _, rest = PAGE.read_text(encoding="utf-8").partition("|---|---|---|---|---|---|---|\n")
        after = rest.partition("\n\n")[2]
        text = f"{head}|---|---|---|---|---|---|---|\n" + "\n".join(lines) + "\n\n" + after
        PAGE.write_text(text, encoding="utf-8")
        draw()


if __name__ == "__main__":
    main()
