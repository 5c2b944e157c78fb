"""Estimate frequencies from released reports, or from counts of several machines, for one or several columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hushuffle._checks import fail
from hushuffle.answers.base import Answer, Estimated, Fakes
from hushuffle.collection.engines.spark import count_reports
from hushuffle.collection.engines.spark_session import plainly, started
from hushuffle.collection.kept import FreshReports
from hushuffle.collection.released import Manifest, columns_in, read_counts, read_manifest, read_reports
from hushuffle.collection.request import MANIFEST, REPORTS, SUMS, part_of
from hushuffle.errors import DataError, SpecificationError, UnsupportedProtocolError
from hushuffle.estimation import HeavyHitters, PoisoningGain, estimate, heavy_hitters, poisoning_gain
from hushuffle.estimation.poisoning import usual_fakes
from hushuffle.estimation.readout import ByGroups, frequency_variance, readout
from hushuffle.mechanisms.mixed_protocol import MixedProtocol
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.mechanisms.shufflers import Scrambler, SecureAggregation, Shuffler, UniformShuffle
from hushuffle.mechanisms.shufflers.base import Reveals
from hushuffle.model import Estimate, Histogram, Progress, Warned, json_number, silent
from hushuffle.report.formatting import plural
from hushuffle.specification import Specification, parse
from hushuffle.specification.mixed import is_mixed, parse_mixed
from hushuffle.specification.warnings import deployment_warnings, weighted_warnings

_BEYOND: Final = 8.0
"""Random deviations practically never exceed this number of standard errors."""

Count = Callable[[Sequence[Path], Mechanism], tuple[int, Histogram]]
"""A function that counts the reports in files: it returns their number, and the support of each value."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Tally:
    """How many reports of one mechanism support each value: `counts`, shape (k,). Tallies can be added."""

    manifest: Manifest
    specification: Specification
    randomizer: Mechanism
    counts: Histogram
    groups: MixedProtocol | None = None
    """The protocol, if groups of people have different randomizers; `randomizer` is that of the first group."""

    @property
    def labels(self) -> tuple[str, ...]:
        return self.specification.population.read(Path()).population.labels

    def __add__(self, other: Tally) -> Tally:
        if self.groups is not None or other.groups is not None:
            fail("Releases of groups with different randomizers do not add up. Estimate each release separately.")
        FreshReports.of(self.specification).check_added()
        if _alike(self.specification) != _alike(other.specification):
            fail("Reports have different randomizers or categories, so they do not add up. Estimate each separately.")
        law = self.protocol.shuffler
        if (law.value_law is not None and law.tossed is None) or law.sum_noise is not None:
            fail(
                "Each release has its own dummies or noise. Estimate each separately, and average the "
                "estimates, weighted by people."
            )
        people = self.manifest.people + other.manifest.people
        dummies = self.manifest.dummies + other.manifest.dummies
        plain = self.specification.plain()
        plain["population"]["n"] = people
        whole = Specification.model_validate(plain)
        coins = self.manifest.coins + other.manifest.coins
        manifest = replace(self.manifest, specification=whole.effective(), people=people, dummies=dummies, coins=coins)
        return replace(self, manifest=manifest, specification=whole, counts=self.counts + other.counts)

    def estimate(self) -> Estimate:
        return estimate(self.counts, protocol=self.protocol)

    @property
    def answer(self) -> Answer:
        """The kind of the answers."""
        return self.specification.population.answer

    @cached_property
    def fakes(self) -> Fakes:
        """One client in a hundred, as a Sybil client, in words."""
        most, gain = self.specification.population.most, self.poisoning()
        each = "" if most == 1 else f", with {most:,} reports each,"
        words = f"{gain.fakes:,} Sybil client{'' if gain.fakes == 1 else 's'} (1 in 100){each}"
        return Fakes(reports=gain.fakes * min(most, self.manifest.people), words=words)

    def estimated(self, *, confidence: float) -> Estimated | None:
        """What the answers' kind estimates in addition to shares, or why it cannot; None: nothing."""
        if not self.answer.estimated_as:
            return None
        try:
            return self.answer.estimated(self.counts, protocol=self.protocol, confidence=confidence, fakes=self.fakes)
        except UnsupportedProtocolError as refusal:
            return Estimated(facts={"unanswered": str(refusal)}, notes=(str(refusal),))

    @property
    def weights(self) -> dict[str, Any]:
        """How the estimate weights groups with different randomizers, as plain values; empty without groups."""
        if self.groups is None:
            return {}
        read = ByGroups.of(self.groups.groups)
        rows = [
            {"people": people, "local_epsilon": json_number(randomizer.local_epsilon), "weight": weight}
            for (people, randomizer), weight in zip(self.groups.groups, read.weights, strict=True)
        ]
        return {"groups": rows, "largest_bias": read.bias}

    def told_from_noise(self, estimated: Estimate, *, confidence: float) -> HeavyHitters:
        """With probability at least `confidence`, every value in the result has at least one person."""
        return heavy_hitters(estimated, protocol=self.protocol, level=1 - confidence)

    def warnings(self, *, confidence: float) -> tuple[Warned, ...]:
        if self.groups is not None:
            return (*self._implausible(), *weighted_warnings(self.groups))
        delta = self.specification.targets.delta
        return (*self._implausible(), *deployment_warnings(self.protocol, delta=delta, level=1 - confidence))

    def _implausible(self) -> Iterator[Warned]:
        """Yield a warning if estimates are so implausible that the reports probably come from another mechanism."""
        estimated = self.estimate()
        errors = np.sqrt(frequency_variance(self.protocol).worst([0.0, 1.0])) + 1.0 / self.manifest.people
        beyond = (estimated.raw < -_BEYOND * errors[0]) | (estimated.raw > 1 + _BEYOND * errors[1])
        if beyond.any():
            yield Warned(
                key="implausible-shares",
                sentence=(
                    f"{plural(int(beyond.sum()), 'estimated share')} of {estimated.k:,} lie too far outside 0 to 1 to "
                    "be chance: the reports do not match the manifest."
                ),
                advice="Look for edited files, reports of another collection, or Sybil clients.",
            )

    def poisoning(self) -> PoisoningGain:
        """Return the maximal poisoning gain if one client in a hundred were a Sybil client."""
        reports = self.manifest.people
        each = min(self.specification.population.most, reports)
        return poisoning_gain(self.protocol, fakes=usual_fakes(reports // each), reports_per_person=each)

    @property
    def protocol(self) -> Any:
        if self.groups is not None:
            return self.groups.with_dummies(self.manifest.dummies)

        def with_shuffler(shuffler: Shuffler) -> Protocol:
            return Protocol(randomizer=self.randomizer, shuffler=shuffler, n=self.manifest.people)

        protocol = with_shuffler(Scrambler(dummies=self.manifest.dummies))
        if self.specification.shuffler.reveals is Reveals.SUMS:
            servers = self.specification.shuffler.build()  # the random bits of added releases add up
            coins = SecureAggregation(coins=self.manifest.coins, servers=1, honest=0)
            protocol = with_shuffler(coins if servers.sum_noise is None else servers)
        if self.specification.shuffler.reveals is Reveals.MULTISET:
            described = with_shuffler(self.specification.shuffler.build())
            # A random number of reports from randomizer or shuffler is no number of dummies from the blanket.
            protocol = described if described.shuffler.tossed or described.shuffler.value_law else protocol
        # The number of messages that each person sent was counted.
        sent = protocol.shuffler.value_law is None and protocol.shuffler.most_dummies is not None
        return protocol.with_dummies(self.manifest.dummies) if sent else protocol


def tally_reports(
    sources: Sequence[Path],
    *,
    manifest: Path | None = None,
    progress: Progress | None = None,
    count: Count | None = None,
) -> Tally:
    """Return how many reports in all `sources` together support each value.

    Sources are folders that `hushuffle collect` wrote, files of reports, or files of counts (.json). By default each
    file of reports has its own manifest.json beside it, and this machine counts the reports.
    """
    tell = progress or silent
    files = [_released(source) for source in sources]
    if len({file.resolve() for file in files}) < len(files):
        fail("The same reports are given twice, so their people would count twice. Give each file once.")
    counted = [file for file in files if file.suffix == ".json"]
    collected = [file for file in files if file.suffix != ".json"]
    groups = (
        [(manifest, collected)]
        if manifest is not None and collected
        else [(file.with_name(MANIFEST), [file]) for file in collected]
    )
    tallies = []
    for done, file in enumerate(counted):
        tell("adding counts", done / len(files))
        tallies.append(_of_counts(file))
    for done, (described, group) in enumerate(groups, start=len(counted)):
        tell("counting reports", done / len(files))
        tallies.append(_of_reports(described, group, count or count_here))
    if not tallies:
        fail("There are no reports.")
    whole = tallies[0]
    for tally in tallies[1:]:
        whole += tally
    tell("done", 1.0)
    return whole


def _released(source: Path) -> Path:
    if not source.is_dir():
        return source
    return source / SUMS if (source / SUMS).exists() else source / REPORTS


def _of_counts(file: Path) -> Tally:
    manifest, counts = read_counts(file)
    specification, randomizer, groups = _described(manifest, file)
    summed = specification.shuffler.reveals is Reveals.SUMS
    shuffler = specification.shuffler.build() if summed else UniformShuffle()
    each, most = shuffler.all_coins, manifest.reports + manifest.coins
    if bool(each) != bool(manifest.coins) or (each and manifest.coins % each):
        fail(f"{file}: `coins` and `specification` contradict each other: the file may have been edited.")
    if counts.size != randomizer.counted:
        what = "categories" if randomizer.counted == randomizer.inputs else "different reports"
        fail(f"{file} has {counts.size:,} counts for {randomizer.counted:,} {what}: the file may have been edited.")
    if shuffler.sum_noise is None and not 0 <= int(counts.min()) <= int(counts.max()) <= most:
        fail(f"{file}: a support count is below 0, or exceeds the number of reports.")
    each_report = readout(randomizer, for_what="An estimate of frequencies").each
    reports = manifest.reports
    if each_report is not None and not summed and int(counts.sum()) != each_report * reports:
        fail(f"{file}: the counts are impossible for {reports:,} reports: the file may have been edited.")
    return Tally(
        manifest=manifest,
        specification=specification,
        randomizer=randomizer,
        counts=Histogram(counts=counts, noisy=shuffler.sum_noise is not None),
        groups=groups,
    )


def count_here(files: Sequence[Path], randomizer: Mechanism) -> tuple[int, Histogram]:
    readout(randomizer, for_what="An estimate of frequencies")  # the function either returns or refuses
    counts: npt.NDArray[np.int64] = np.zeros(randomizer.counted, dtype=np.int64)
    size = 0
    for file in files:
        for reports in read_reports(file, layout=randomizer.layout):
            counts += randomizer.counts(reports).counts
            size += reports.shape[0]
    return size, Histogram(counts=counts)


def _of_reports(described: Path, files: Sequence[Path], count: Count) -> Tally:
    manifest = read_manifest(described)
    specification, randomizer, groups = _described(manifest, described)
    size, counts = count(files, randomizer)
    expected = manifest.reports
    if size != expected:
        fail(f"{described} describes {expected:,} reports, but there are {size:,}: it belongs to other reports.")
    return Tally(manifest=manifest, specification=specification, randomizer=randomizer, counts=counts, groups=groups)


def _described(manifest: Manifest, path: Path) -> tuple[Specification, Mechanism, MixedProtocol | None]:
    text, name, mixed = manifest.specification, f"the specification in {path}", None
    try:
        mixed = parse_mixed(text, file=name) if is_mixed(text) else None
        specification = parse(text, file=name) if mixed is None else mixed.shared
    except SpecificationError as error:
        raise DataError(str(error)) from error
    if specification.plain()["population"].get("n") != manifest.people:
        fail(f"{path}: `people` and `specification` contradict each other: the file may have been edited.")
    k = specification.population.read(Path()).k
    groups = None if mixed is None else mixed.build([group.people or 0 for group in mixed.groups], k)
    randomizer = specification.randomizer.build(k) if groups is None else groups.groups[0][1]
    return specification, randomizer, groups


def _alike(specification: Specification) -> tuple[Any, Any]:
    plain = specification.plain()
    return plain["randomizer"], {key: value for key, value in plain["population"].items() if key != "n"}


def tally_columns(
    sources: Sequence[Path],
    *,
    manifest: Path | None = None,
    progress: Progress | None = None,
    count: Count | None = None,
) -> dict[str, Tally]:
    """The result has a key for each column: its folder's name, or "" for a column that was collected alone."""
    for source in sources:
        if not source.exists():
            fail(
                f"{source} does not exist. Give a folder that hushuffle collect wrote, or a file of reports or counts."
            )
    folders = [folder for source in sources for folder in _batches(source)]
    columns = [columns_in(source / MANIFEST) if source.is_dir() else () for source in folders]
    if not any(columns):
        return {"": tally_reports(folders, manifest=manifest, progress=progress, count=count)}
    first = columns[0]
    if any(sorted(names) != sorted(first) for names in columns):
        fail("The releases have different columns. Estimate one column at a time: pass FOLDER/NAME of each.")
    if manifest is not None:
        fail("The manifest of one column was passed for several columns. Remove it: each column has its own.")
    return {
        name: tally_reports(
            [source / name for source in folders], progress=part_of(progress, name, place, len(first)), count=count
        )
        for place, name in enumerate(first)
    }


def _batches(source: Path) -> tuple[Path, ...]:
    """Return the batches in a folder of batches; return any other source itself."""
    if not source.is_dir() or (source / REPORTS).exists() or (source / MANIFEST).exists():
        return (source,)
    folders = [path for path in source.glob("batch-*") if path.is_dir()]
    return tuple(sorted(folders, key=lambda path: (len(path.name), path.name))) or (source,)


@contextmanager
def counting_on(master: str) -> Iterator[Count]:
    with started(master) as session:

        def count(files: Sequence[Path], randomizer: Mechanism) -> tuple[int, Histogram]:
            absent = [file for file in files if not file.is_file()]
            if absent:
                fail(f"{absent[0]} does not exist.")
            strict = {"ignoreCorruptFiles": "false", "ignoreMissingFiles": "false"}
            with plainly():
                frame = session.read.options(**strict).parquet(*(f"file://{file.resolve()}" for file in files))
            return count_reports(frame, randomizer)

        yield count
