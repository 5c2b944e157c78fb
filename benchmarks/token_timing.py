"""Whether the time of a blind signature depends on the number that is signed: python benchmarks/token_timing.py.

Half of the signatures, at random, are of one number, half of random ones; Welch's t of their times, the slowest tenth
left out (Reparaz, Balasch, Verbauwhede 2017). Beside it the bare power by the Chinese remainder theorem, without
blinding: what an issuer must not do. Beyond 4.5 in size a dependence is taken for certain. Takes half a minute.
"""

from __future__ import annotations

import secrets
import statistics
import time
from collections.abc import Callable

from hushuffle_network.tokens import IssuerKey, blind_sign

SIGNATURES, FIXED = 2000, 12_345


def welch(sign: Callable[[int], object], modulus: int) -> tuple[float, float]:
    """Return t, and the milliseconds of one signature."""
    times: dict[bool, list[int]] = {False: [], True: []}
    for _ in range(SIGNATURES):
        fixed = secrets.randbits(1) == 1
        number = FIXED if fixed else secrets.randbelow(modulus)
        start = time.thread_time_ns()
        sign(number)
        times[fixed].append(time.thread_time_ns() - start)
    most = sorted(times[False] + times[True])[SIGNATURES * 9 // 10]
    groups = [[one for one in group if one < most] for group in times.values()]
    spread = sum(statistics.variance(group) / len(group) for group in groups) ** 0.5
    means = [statistics.mean(group) for group in groups]
    return (means[0] - means[1]) / spread, statistics.mean(means) / 1e6


def main() -> None:
    key = IssuerKey.generate().numbers
    modulus = key.public_numbers.n

    def bare(number: int) -> tuple[int, int]:
        return pow(number % key.p, key.dmp1, key.p), pow(number % key.q, key.dmq1, key.q)

    found = {"bare pow, no blinding": welch(bare, modulus)}
    found["gmpy2, blinded"] = welch(lambda number: blind_sign(key, number), modulus)
    for name, (t, milliseconds) in found.items():
        print(f"{name:<24} t = {t:7.2f}   {milliseconds:6.2f} ms")


if __name__ == "__main__":
    main()
