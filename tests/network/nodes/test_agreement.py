"""A run over the network agrees with the model: its answers, and the law of what somebody on the wire sees.

All nodes are real: each source seals, connects with mutual TLS over loopback, scramblers gather and release, and the
recorder in front of every node writes down what passes. They share one process and one event loop, nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from hushuffle.network.nodes import recorder
from hushuffle.network.nodes.document import Batch, RunDocument, Server, Step
from hushuffle.network.nodes.result import RunResult
from hushuffle.network.nodes.seals import SealKey
from hushuffle.network.nodes.source import Person
from hushuffle.network.run import Loopback
from hushuffle.network.setup import Deployment
from hushuffle.plans import GroupStatistics
from hushuffle.queries import Aggregate, parse_plan
from hushuffle.randomness import reproducible
from network.network_tools import Stage, deployed, held, plan_text, received, simulation, stage
from oracles.traffic_enumeration import flooded, scrambled
from runtime_cases import aggregate_of, bounded

FALSE_ALARM, FEWEST = 1e-4, 10
"""The coins are the same in every run, so that a right law exceeds its threshold never or always; if others are taken,
with this chance, nearly, as classes are expected ten times or more. Sizes are those at which a wrong law shows."""


# Answers


SETS = '[["age"], ["sex"], ["age", "sex"]]'
VALUES = 'values = ["x"]\nfunctions = ["count", "sum", "avg", "min", "max"]'


@pytest.mark.parametrize(
    "options",
    [
        {"traffic": "dummies = 3\nbatch = 12\nmin_batch = 8"},
        {"traffic": "dummies = 2\nbatch = 9\ncapped = true"},
        {"traffic": "flood = 1"},
        {"traffic": "dummies = 3\nbatch = 6", "per_person": 'per_person = "one"'},
    ],
    ids=["scramblers", "capped", "flooding", "one set per person"],
)
def test_a_run_gives_what_the_simulation_gives_on_the_same_coins(tmp_path: Path, options: dict[str, str]) -> None:
    text = plan_text(
        people=36, traffic=options["traffic"], sets=SETS, more=VALUES + "\n" + options.get("per_person", "")
    )
    specification = parse_plan(text)
    records = specification.query.records(Path())

    async def scenes() -> tuple[RunResult, Stage]:
        async with stage(text, tmp_path) as scene:
            scene.start_servers()
            scene.start(*scene.sources)
            if not scene.scramblers:
                await scene.hurry(*scene.computes)
            return await scene.result(), scene

    result, scene = bounded(scenes())
    document = scene.document
    expected = simulation(specification.plan(records.n), aggregate_of(document).table(records.rows), scene.deployment)
    for step, found, (true, estimated) in zip(result.steps, received(document, result), expected, strict=True):
        agree(found, true)
        agree(found.scaled(step.scale()), estimated)


def agree(one: GroupStatistics, other: GroupStatistics) -> None:
    """Counts to the last, everything else but for the order of sums."""
    np.testing.assert_allclose(one.count, other.count, rtol=1e-12)
    for name in one.sum:
        np.testing.assert_allclose(one.sum[name], other.sum[name], rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(one.min[name], other.min[name])
        np.testing.assert_array_equal(one.max[name], other.max[name])


# The law of the graph


TARGETS = 3
QUERY = Aggregate(grouping_sets=((("age",), (6,)),), partitions=TARGETS)


def many(owns: Sequence[Sequence[int]], *, scramblers: bool = True, **options: Any) -> tuple[Deployment, Loopback]:
    """Return one step with a batch for each row of `owns`, the own targets of its sources; or all without scramblers.

    One node speaks for all sources of a batch, which saves handshakes and changes no message; not under a cap, where
    all sources must be there, and one node counts once.
    """
    loopback = Loopback(recorded=True)
    groups = {int(QUERY.query.nodes(0, np.array([group]))[0]): group for group in range(6)}
    computes = tuple(f"compute-{target}" for target in range(TARGETS))
    if scramblers:
        apart = options.get("capped", False)
        batches = [
            Batch(
                scrambler=f"scrambler-{place:04d}",
                holders=tuple(f"source-{place:04d}{f'-{slot}' if apart else ''}" for slot, _ in enumerate(row)),
            )
            for place, row in enumerate(owns)
        ]
    else:
        batches = [Batch(scrambler=None, holders=tuple(f"source-{place:04d}" for place, _ in enumerate(owns)))]
    names = ["result", *computes, *(batch.scrambler for batch in batches if batch.scrambler is not None)]
    seals = {name: SealKey.generate() for name in ("result", *computes)}
    servers = {
        name: Server(address=loopback.listening(name), seal=seals[name].public.text if name in seals else None)
        for name in names
    }
    step = Step(name="ages", computes=computes, batches=tuple(batches), **options)
    document = RunDocument(
        run="5" * 32,  # the same coins in every run of the test
        plan="",
        people=sum(map(len, owns)),
        query=QUERY,
        steps=(step,),
        result="result",
        servers=servers,
        collect=600.0,
        patience=60.0,
    )
    people: dict[str, list[Person]] = {}
    record = 0
    for place, row in enumerate(owns):
        for slot, own in enumerate(row):
            where = (place, slot) if scramblers else (0, place)
            person = Person(record=record, places={1: where}, row=np.array([float(groups[own])]))
            holder = batches[where[0]].holders[where[1]]
            people.setdefault(holder, []).append(person)
            record += 1
    return Deployment(document=document, seals=seals, people={k: tuple(v) for k, v in people.items()}), loopback


def shifted(made: Deployment, batches: int) -> Deployment:
    """Return a deployment whose records are further ones, with coins of their own."""
    people = {
        name: tuple(replace(one, record=one.record + 1000 * batches) for one in own)
        for name, own in made.people.items()
    }
    return replace(made, people=people)


def graphs(made: Deployment, loopback: Loopback, state: Path, *, seed: int = 0) -> pl.DataFrame:
    """Run it, and return what somebody on the wire saw: messages by sender and receiver."""

    async def scenes() -> pl.DataFrame:
        async with Stage(made, loopback, state) as scene:
            scene.start("result", *scene.computes)
            for place, name in enumerate(scene.scramblers):
                scene.start(name, rng=reproducible(10_000 + seed + place))
            # More scramblers at once than a target has places for; of sources without scramblers, some at a time.
            together = len(scene.sources) if scene.scramblers else 20
            for start in range(0, len(scene.sources), together):
                some = scene.sources[start : start + together]
                scene.start(*some)
                await scene.wait(*some)
            if not scene.scramblers:
                await scene.hurry(*scene.computes)
            await scene.result()
            return scene.trace.messages()

    return bounded(scenes())


def histograms(seen: pl.DataFrame, sender: str) -> list[tuple[int, ...]]:
    """Return how many messages each sender of a kind sent to each target."""
    found: dict[str, list[int]] = {}
    for one, receiver, messages in seen.rows():
        if one.startswith(sender) and receiver.startswith("compute"):
            found.setdefault(one, [0] * TARGETS)[int(receiver.removeprefix("compute-"))] = messages
    return [tuple(row) for _, row in sorted(found.items())]


Law = Mapping[tuple[int, ...], Fraction]


def classes(law: Law, n: int) -> list[list[tuple[int, ...]]]:
    """Put outputs together, the rarest first, until each class is expected often enough among n."""
    found: list[list[tuple[int, ...]]] = [[]]
    for output in sorted(law, key=lambda one: (law[one], one)):
        if n * sum(law[one] for one in found[-1]) >= FEWEST:
            found.append([])
        found[-1].append(output)
    if n * sum(law[one] for one in found[-1]) < FEWEST:
        found[-2] += found.pop()
    return found


class ChiSquare:
    """A chi-square test of independent outputs against their laws, one law for each group of outputs."""

    def __init__(self) -> None:
        self.statistic, self.freedom = 0.0, 0
        self._groups: list[tuple[Law, int, list[list[tuple[int, ...]]]]] = []

    def add(self, seen: Iterable[tuple[int, ...]], law: Law) -> None:
        """Add outputs of one law."""
        observed = Counter(seen)
        n = observed.total()
        assert observed.keys() <= law.keys(), "something was seen that cannot happen"
        pooled = classes(law, n)
        for one in pooled:
            expected = float(n * sum(law[output] for output in one))
            self.statistic += (sum(observed[output] for output in one) - expected) ** 2 / expected
        self.freedom += len(pooled) - 1
        self._groups.append((law, n, pooled))

    @property
    def threshold(self) -> float:
        """What a right law exceeds with probability `FALSE_ALARM`."""
        return float(stats.chi2.isf(FALSE_ALARM, self.freedom))

    def power(self, *others: Law) -> float:
        """Return the chance to find out that these are the laws."""
        centrality = 0.0
        for (law, n, pooled), other in zip(self._groups, others, strict=True):
            for one in pooled:
                chance = sum(law[output] for output in one)
                wrong = sum(other.get(output, Fraction()) for output in one)
                centrality += float(n * (wrong - chance) ** 2 / chance)
        return float(stats.ncx2.sf(self.threshold, self.freedom, centrality))


HALF = Fraction(1, 2)


def scrambled_law(own: tuple[int, ...], *, sigma: Fraction = HALF, dummies: int = 2, capped: bool = False) -> Law:
    return scrambled(own, TARGETS, sigma, dummies, len(own) if capped else None, "uniform")


@pytest.mark.parametrize(
    ("batches", "capped"),
    [
        (80, False),
        pytest.param(1500, False, marks=pytest.mark.slow),
        pytest.param(1500, True, marks=pytest.mark.slow),
    ],
)
def test_the_law_of_a_scramblers_messages_is_the_models(tmp_path: Path, *, batches: int, capped: bool) -> None:
    """With 80 batches a sigma of 0 or 1 instead of 0.5 is found out; with 1,500 one that is 0.2 off, too.

    A cap that is forgotten is found out by the first output that cannot be.
    """
    own = (0, 0, 0, 0)
    law = scrambled_law(own, capped=capped)
    test, seen = ChiSquare(), list[tuple[int, ...]]()
    part = min(batches, 150)
    for start in range(0, batches, part):
        made, loopback = many([own] * part, sigma=0.5, dummies=2, capped=capped, min_batch=len(own) if capped else 1)
        # Every part of the batches has coins of its own.
        made = shifted(made, start)
        graph = graphs(made, loopback, tmp_path / str(start), seed=start)
        to_scramblers = graph.filter(pl.col("receiver").str.starts_with("scrambler"))
        per_holder = [1] * (part * len(own)) if capped else [len(own)] * part
        assert to_scramblers["messages"].to_list() == per_holder  # whatever the data and the coins
        seen += histograms(graph, "scrambler")
    test.add(seen, law)
    assert len(seen) == batches
    assert test.statistic < test.threshold
    for sigma in (Fraction(0), Fraction(1)):
        assert test.power(scrambled_law(own, sigma=sigma, capped=capped)) > 0.99
    if batches > 1000:
        for sigma in (Fraction(3, 10), Fraction(7, 10)):
            assert test.power(scrambled_law(own, sigma=sigma, capped=capped)) > 0.999


def flooded_law(own: int, *, sigma: Fraction = HALF) -> Law:
    law = flooded(own, TARGETS, sigma, 1, "uniform")
    return {tuple(int(t in pair) for t in range(TARGETS)): chance for pair, chance in law.items()}


@pytest.mark.parametrize("sources", [240, pytest.param(2400, marks=pytest.mark.slow)])
def test_the_law_of_the_edges_of_sources_is_the_models(tmp_path: Path, sources: int) -> None:
    """With 240 sources a sigma of 0 or 1 instead of 0.5 is found out; with 2,400 one that is 0.2 off, too."""
    owns = [(place % TARGETS,) for place in range(sources)]
    made, loopback = many(owns, scramblers=False, sigma=0.5, flood=1, min_batch=1)
    seen = histograms(graphs(made, loopback, tmp_path), "source")
    test = ChiSquare()
    for own in range(TARGETS):
        test.add(seen[own::TARGETS], flooded_law(own))
    assert len(seen) == sources
    assert test.statistic < test.threshold
    wrong = [Fraction(0), Fraction(1)] + [Fraction(3, 10), Fraction(7, 10)] * (sources > 1000)
    for sigma in wrong:
        assert test.power(*(flooded_law(own, sigma=sigma) for own in range(TARGETS))) > 0.97


# What can be seen of one run


def watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, seed: int, like: Stage | None = None
) -> tuple[Stage, bytes]:
    """Run a small plan over made-up people of a seed; return it, and every byte that passed."""
    passed = bytearray()
    feed = recorder._Records.feed

    def both(self: recorder._Records, data: bytes) -> None:
        passed.extend(data)
        feed(self, data)

    monkeypatch.setattr(recorder._Records, "feed", both)
    made, loopback = deployed(plan_text(people=24, seed=seed, sets=SETS, more=VALUES), recorded=True)
    scene = Stage(made, loopback, tmp_path / str(seed))
    if like is not None:
        scene.identities = like.identities  # certificates differ in length by a byte now and then

    async def scenes() -> None:
        async with scene:
            scene.start_servers()
            scene.start(*scene.sources)
            await scene.result()
            for name in scene.journals:
                assert scene.rejected(name) == {}

    bounded(scenes())
    monkeypatch.undo()
    return scene, bytes(passed)


def test_no_record_is_seen_on_the_wire_or_kept_in_the_clear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene, passed = watched(tmp_path, monkeypatch, seed=1)
    assert len(passed) > scene.trace.cells * scene.trace.cell
    contents = [entry.content for entries in held(scene.deployment).values() for entry in entries]
    values = {content[-8:] for content in contents}  # the double of x
    assert len(values) == 24
    kept = b"".join(path.read_bytes() for path in (tmp_path / "1").iterdir())
    assert len(kept) > 24 * 3 * 1024
    for value in values:  # that one turns up in random bytes: less than 1e-11
        assert value not in passed
        assert value not in kept
    # It would be found: this is what the compute nodes read.
    assert all(value in b"".join(contents) for value in values)


def test_all_messages_have_one_size_and_their_numbers_depend_on_no_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = watched(tmp_path, monkeypatch, seed=1)
    other, _ = watched(tmp_path, monkeypatch, seed=2, like=one)
    assert one.document.places == other.document.places
    assert held(one.deployment) != held(other.deployment)
    pairs, cells = zip(*(everything(scene) for scene in (one, other)), strict=True)
    assert pairs[0] == pairs[1]
    # All that differs is how many of a scrambler's messages go to which of its targets.
    assert cells[0] != cells[1]
    for scene, found in zip((one, other), cells, strict=True):
        for scrambler in scene.scramblers:
            sent = sum(count for (sender, _), count in found.items() if sender == scrambler)
            assert sent == len(scene.sources_of(scrambler)) + 3
    assert max(size for _, _, size in pairs[0]) == one.trace.cell


def everything(scene: Stage) -> tuple[Counter[tuple[str, str, int]], Counter[tuple[str, str]]]:
    """Return the records of a run by sender, receiver and size; the messages of scramblers apart."""
    rows = scene.trace.table().select("sender", "receiver", "bytes").rows()
    cell = scene.trace.cell
    apart = [row for row in rows if row[2] == cell and row[0].startswith("scrambler")]
    return Counter(rows) - Counter(apart), Counter((sender, receiver) for sender, receiver, _ in apart)
