"""From released reports, or counts of several machines, to frequencies: of one column or several, of many batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hushuffle._checks import fail
from hushuffle.collection.engines.spark import count_reports
from hushuffle.collection.engines.spark_session import plainly, started
from hushuffle.collection.released import Manifest, columns_in, read_counts, read_manifest, read_reports
from hushuffle.collection.request import MANIFEST, REPORTS, SUMS
from hushuffle.curves.readout import frequency_variance, readout
from hushuffle.errors import DataError, SpecificationError
from hushuffle.estimation import HeavyHitters, PoisoningGain, estimate, heavy_hitters, poisoning_gain
from hushuffle.estimation.numbers import NumberEstimate, estimate_numbers
from hushuffle.estimation.poisoning import usual_fakes
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.mechanisms.shufflers import Scrambler, SecureAggregation, Shuffler
from hushuffle.mechanisms.shufflers.base import Reveals
from hushuffle.model import Estimate, Histogram, NumberGrid, Progress, Warned, silent
from hushuffle.report.formatting import plural
from hushuffle.specification import ReachPopulation, Specification, parse
from hushuffle.specification.warnings import deployment_warnings

_BEYOND: Final = 8.0
"""Standard errors that chance hardly exceeds."""

Count = Callable[[Sequence[Path], Mechanism], tuple[int, Histogram]]
"""Counts the reports in files: how many there are, and the support of each value."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Tally:
    """How often each value is supported by reports that were made alike: `counts`, shape (k,); tallies add up."""

    manifest: Manifest
    specification: Specification
    randomizer: Mechanism
    counts: Histogram

    @property
    def labels(self) -> tuple[str, ...]:
        """The k categories."""
        return self.specification.population.read(Path()).population.labels

    def __add__(self, other: Tally) -> Tally:
        if self.specification.memoised:
            fail(
                "Reports that are kept (memoised) have the same noise in every round: added up, rounds are not as "
                "good as more people. Estimate each round by itself."
            )
        if _alike(self.specification) != _alike(other.specification):
            fail("The reports were collected with different randomizers or categories: they cannot be added up.")
        law = self.protocol.shuffler
        if law.value_law is not None and law.tossed is None:
            fail(
                "The shuffler drew dummies of its own for each release: estimate each by itself, and add up the "
                "estimates, weighted by their people."
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
        """Return the frequencies among all people counted."""
        return estimate(self.counts, protocol=self.protocol)

    @property
    def grid(self) -> NumberGrid | None:
        """What numbers were rounded on; None: answers are categories."""
        population = self.specification.population
        return None if isinstance(population, ReachPopulation) else population.grid

    def numbers(self) -> NumberEstimate | None:
        """Return the mean of all people's numbers and more; None: answers are categories.

        Raises:
            UnsupportedProtocolError: the randomizer's reports say nothing about numbers.
        """
        return None if self.grid is None else estimate_numbers(self.counts, protocol=self.protocol, grid=self.grid)

    def told_from_noise(self, estimated: Estimate, *, confidence: float) -> HeavyHitters:
        """Return the values that somebody holds, and their intervals; both hold for all of them at `confidence`.

        A value that nobody holds is among them in at most 1 - `confidence` of all collections.
        """
        return heavy_hitters(estimated, protocol=self.protocol, level=1 - confidence)

    def warnings(self, *, confidence: float) -> tuple[Warned, ...]:
        """Return what there is to warn about, if values are told from noise at `confidence`."""
        delta = self.specification.targets.delta
        return (*self._implausible(), *deployment_warnings(self.protocol, delta=delta, level=1 - confidence))

    def _implausible(self) -> Iterator[Warned]:
        """Yield whether estimates lie where chance would hardly bring them: the reports come from something else."""
        estimated = self.estimate()
        errors = np.sqrt(frequency_variance(self.protocol).worst([0.0, 1.0])) + 1.0 / self.manifest.people
        beyond = (estimated.raw < -_BEYOND * errors[0]) | (estimated.raw > 1 + _BEYOND * errors[1])
        if beyond.any():
            yield Warned(
                key="implausible-shares",
                sentence=(
                    f"{plural(int(beyond.sum()), 'estimated share')} of {estimated.k:,} so far outside 0 to 1 that "
                    "chance hardly brings them there: the reports were not made as the manifest says."
                ),
                advice="Look for edited files, reports of another collection, or fake users.",
            )

    def poisoning(self) -> PoisoningGain:
        """Return what fake users could do to these estimates if one person in a hundred were fake."""
        reports = self.manifest.people
        each = min(self.specification.population.most, reports)
        return poisoning_gain(self.protocol, fakes=usual_fakes(reports // each), reports_per_person=each)

    @property
    def protocol(self) -> Protocol:
        """What was collected: all people, dummies and coins counted."""

        def with_shuffler(shuffler: Shuffler) -> Protocol:
            return Protocol(randomizer=self.randomizer, shuffler=shuffler, n=self.manifest.people)

        made = with_shuffler(Scrambler(dummies=self.manifest.dummies))
        if self.manifest.coins:
            made = with_shuffler(SecureAggregation(coins=self.manifest.coins, servers=1, honest=0))
        if self.specification.shuffler.reveals is Reveals.MULTISET:
            described = with_shuffler(self.specification.shuffler.build())
            # What people or the shuffler throw coins for is no number of dummies from the blanket.
            made = described if described.shuffler.tossed or described.shuffler.value_law else made
        # How many messages people sent was counted.
        sent = made.shuffler.value_law is None and made.shuffler.most_dummies is not None
        return made.with_dummies(self.manifest.dummies) if sent else made


def tally_reports(
    sources: Sequence[Path],
    *,
    manifest: Path | None = None,
    progress: Progress | None = None,
    count: Count | None = None,
) -> Tally:
    """Return the support counts of all reports in `sources`, added up.

    Sources are folders that `hushuffle collect` wrote, files of reports, or files of counts (.json). `manifest` says
    how the files of reports were made, together; without it every one has its manifest.json beside it. `count` counts
    the reports in files; without it they are counted here, one file after the other.
    """
    tell = progress or silent
    files = [_released(source) for source in sources]
    if len({file.resolve() for file in files}) < len(files):
        fail("The same reports are given twice: their people would count twice.")
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
    """Return the file of reports, or of their sums, in a folder; another source is a file itself."""
    if not source.is_dir():
        return source
    return source / SUMS if (source / SUMS).exists() else source / REPORTS


def _of_counts(file: Path) -> Tally:
    manifest, counts = read_counts(file)
    specification, randomizer = _described(manifest, file)
    summed = specification.shuffler.reveals is Reveals.SUMS
    each = specification.shuffler.build().all_coins if summed else 0
    if bool(each) != bool(manifest.coins) or (each and manifest.coins % each):
        fail(f"{file}: coins and specification do not fit together: it may have been edited.")
    if counts.size != randomizer.counted:
        what = "categories" if randomizer.counted == randomizer.inputs else "different reports"
        fail(f"{file} has {counts.size:,} counts for {randomizer.counted:,} {what}: it may have been edited.")
    each_report = readout(randomizer, for_what="An estimate of frequencies").each
    reports = manifest.reports
    if each_report is not None and not summed and int(counts.sum()) != each_report * reports:
        fail(f"{file}: the counts are not those of {reports:,} reports: it may have been edited.")
    return Tally(manifest=manifest, specification=specification, randomizer=randomizer, counts=Histogram(counts=counts))


def count_here(files: Sequence[Path], randomizer: Mechanism) -> tuple[int, Histogram]:
    """Return how many reports there are in `files`, and the support of each value."""
    readout(randomizer, for_what="An estimate of frequencies")  # or refuse
    counts: npt.NDArray[np.int64] = np.zeros(randomizer.counted, dtype=np.int64)
    size = 0
    for file in files:
        for reports in read_reports(file, layout=randomizer.layout):
            counts += randomizer.counts(reports).counts
            size += reports.shape[0]
    return size, Histogram(counts=counts)


def _of_reports(described: Path, files: Sequence[Path], count: Count) -> Tally:
    manifest = read_manifest(described)
    specification, randomizer = _described(manifest, described)
    size, counts = count(files, randomizer)
    expected = manifest.reports
    if size != expected:
        fail(f"{described} speaks of {expected:,} reports, but there are {size:,}: it belongs to others.")
    return Tally(manifest=manifest, specification=specification, randomizer=randomizer, counts=counts)


def _described(manifest: Manifest, path: Path) -> tuple[Specification, Mechanism]:
    try:
        specification = parse(manifest.specification, file=f"the specification in {path}")
    except SpecificationError as error:
        raise DataError(str(error)) from error
    if specification.plain()["population"].get("n") != manifest.people:
        fail(f"{path}: people and specification do not fit together: it may have been edited.")
    people = specification.population.read(Path())
    return specification, specification.randomizer.build(people.k)


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
    """Return the support counts of all reports in `sources`, added up for each column, by the name of its folder.

    Reports of one column that was collected alone have the name "". A folder of batches stands for all of them.

    Arguments are those of `tally_reports`; sources may be folders of several columns, and of batches, too.
    """
    for source in sources:
        if not source.exists():
            fail(
                f"{source} does not exist. Give a folder that hushuffle collect wrote, or a file of reports or counts."
            )
    found = [folder for source in sources for folder in _batches(source)]
    columns = [columns_in(source / MANIFEST) if source.is_dir() else () for source in found]
    if not any(columns):
        return {"": tally_reports(found, manifest=manifest, progress=progress, count=count)}
    first = columns[0]
    if any(sorted(names) != sorted(first) for names in columns):
        fail("Some of these have columns that others have not: estimate one column, FOLDER/NAME of each.")
    if manifest is not None:
        fail("Every column has a manifest of its own: none can be given for all.")
    return {
        name: tally_reports(
            [source / name for source in found], progress=_part(progress, name, place, len(first)), count=count
        )
        for place, name in enumerate(first)
    }


def _batches(source: Path) -> tuple[Path, ...]:
    """Return the batches in a folder of batches; the source itself if it is something else."""
    if not source.is_dir() or (source / REPORTS).exists() or (source / MANIFEST).exists():
        return (source,)
    found = [path for path in source.glob("batch-*") if path.is_dir()]
    return tuple(sorted(found, key=lambda path: (len(path.name), path.name))) or (source,)


def _part(progress: Progress | None, name: str, place: int, columns: int) -> Progress | None:
    """Return what is told about one of several columns."""
    if progress is None:
        return None
    return lambda what, share: progress(f"{name}: {what}", (place + share) / columns)


@contextmanager
def counting_on(master: str) -> Iterator[Count]:
    """Give a way to count reports on a Spark cluster that reads the same files as this machine."""
    with started(master) as session:

        def count(files: Sequence[Path], randomizer: Mechanism) -> tuple[int, Histogram]:
            absent = [file for file in files if not file.is_file()]
            if absent:
                message = f"{absent[0]} does not exist."
                raise DataError(message)
            strict = {"ignoreCorruptFiles": "false", "ignoreMissingFiles": "false"}
            with plainly():
                frame = session.read.options(**strict).parquet(*(f"file://{file.resolve()}" for file in files))
            return count_reports(frame, randomizer)

        yield count
