"""Everything about one given dataset, by enumerating the counts."""

from __future__ import annotations

from oracles import dp_enumeration as oracle


def instance_delta(people: oracle.Counts, truth: oracle.Number, growth: oracle.Number, dummies: int = 0) -> float:
    """The largest divergence over who changes and to which value, the others of `people` as they are."""
    k, worst = len(people), 0.0
    rows = oracle.channel(k, truth)
    for before in range(k):
        if people[before] == 0:
            continue
        others = tuple(count - (value == before) for value, count in enumerate(people))
        base = oracle.counts_law(others, rows, dummies)
        laws = [oracle.add_report(base, row) for row in rows]
        for after in range(k):
            if after != before:
                there = oracle.hockey_stick(laws[before], laws[after], growth)
                back = oracle.hockey_stick(laws[after], laws[before], growth)
                worst = max(worst, float(there), float(back))
    return worst
