"""Warnings of all commands: too little noise, a large delta, few people, and values that are not significant."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hushuffle.errors import DataError, InvalidInputError, NumericalError, UnsupportedProtocolError
from hushuffle.estimation import predicted_standard_error
from hushuffle.estimation.readout import ByGroups, counted
from hushuffle.mechanisms.mixed_protocol import MixedProtocol
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.model import Warned, number
from hushuffle.questions.dp.central import LARGE_EPSILON
from hushuffle.specification.kinds import RANDOMIZERS
from hushuffle.specification.population import PERSON

if TYPE_CHECKING:
    from hushuffle.tables.csv_form import CsvForm

SMALL_CROWD: Final = 100
_TOGETHER: Final = "the reports of one person, taken together, hide"
LEVEL: Final = 0.05
"""Family-wise error rate of the list of statistically significant values."""

_SAME: Final = 1e-9
"""Weights of groups that differ less from the shares of their people are taken to be equal to them."""

_ALIKE: Final = 1.1
"""Mechanisms whose standard errors differ by less than this factor count as equally accurate."""


def deployment_warnings(protocol: Protocol, *, delta: float, level: float = LEVEL) -> tuple[Warned, ...]:
    """Return the warnings that follow from the protocol and delta; assess, calibrate, collect and estimate show them.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(
    ...     randomizer=hs.RandomizedResponse(k=1000, epsilon=6.0), shuffler=hs.UniformShuffle(), n=50_000
    ... )
    >>> [warned.key for warned in deployment_warnings(survey, delta=0.1)]
    ['large-local-epsilon', 'large-delta', 'rare-values-hidden']
    """
    return (*privacy_warnings(protocol, delta=delta), *accuracy_warnings(protocol, level=level))


def privacy_warnings(protocol: Protocol, *, delta: float, times: int = 1) -> Iterator[Warned]:
    """Yield warnings about too little noise, a large delta and few people; `times` counts all reports of one person."""
    local = times * protocol.randomizer.local_epsilon
    if math.isinf(local):
        yield _no_noise(protocol)
    elif local >= LARGE_EPSILON:
        yield _little_noise(local, "", "a report by itself hides" if times == 1 else _TOGETHER)
    if delta * protocol.n >= 1:
        yield Warned(
            key="large-delta",
            sentence=f"Delta is {delta:g}, not below 1/n = {1 / protocol.n:.2g}: a release may then show an answer.",
            advice="Use a delta well below 1/n, for example 1/(10 n).",
        )
    if protocol.n < SMALL_CROWD:
        yield Warned(
            key="small-crowd",
            sentence=f"Only {protocol.n} people take part: with fewer than {SMALL_CROWD}, shuffling hides little.",
            advice="Ask more people before you release any results.",
        )


def _no_noise(protocol: Protocol) -> Warned:
    """Return the warning that reports alone do not protect, with what does instead."""
    key, shuffler = "no-noise", protocol.shuffler
    sentence = "Devices add no noise. An adversary who knows all other answers can compute the last answer."
    advice = "Set a finite epsilon in [randomizer], unless you claim only pseudonymity."
    if protocol.randomizer.chosen_epsilon is None:
        key = "impossible-reports"
        sentence = "Some reports are impossible for some values, so each of these reports excludes values."
        advice = "Give every report a probability above 0 for every value."
    elif shuffler.tossed is not None:
        failure = "If the shuffler fails, or an adversary can link the messages of one person, answers can be read."
        sentence = f"Devices add no noise. {failure}"
        advice = "Tell respondents that privacy depends on the shuffler, or set a finite epsilon in [randomizer]."
    elif shuffler.value_law is not None:
        failure = "If the shuffler fails, adds fewer dummies or reveals their number, answers can be read."
        sentence = f"Devices add no noise. {failure}"
        vouched = "in [statement.vouched] who confirms that it can be trusted"
        advice = f'Name in [statement] who runs the shuffler, and {vouched}. Or use kind = "blanket-messages".'
    return Warned(key=key, sentence=sentence, advice=advice)


def total_warnings(columns: Mapping[str, Protocol], *, rounds: int = 1) -> Iterator[Warned]:
    """Yield the warning about the local epsilon of all reports of one person, one report per column and round.

    A single column (its name is "") has its own warnings.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=3, epsilon=2.0), shuffler=hs.UniformShuffle(), n=900)
    >>> print(next(total_warnings({"smokes": survey, "town": survey, "age": survey})).sentence)
    Local epsilon of all 3 columns together is 6.000. From 5 on, the reports of one person, taken together, hide little.
    """
    if "" in columns:
        return
    local = rounds * sum(protocol.randomizer.local_epsilon for protocol in columns.values())
    if LARGE_EPSILON <= local < math.inf:
        of = f" of all {len(columns):,} columns together{f' in {rounds:,} rounds' if rounds > 1 else ''}"
        yield _little_noise(local, of, _TOGETHER)


def _little_noise(local: float, of: str, hides: str) -> Warned:
    return Warned(
        key="large-local-epsilon",
        sentence=f"Local epsilon{of} is {number(local)}. From {LARGE_EPSILON:g} on, {hides} little.",
        advice="Use a smaller epsilon in [randomizer], or tell respondents: privacy depends on who gets their reports.",
    )


def row_warnings(
    files: Sequence[str], *, answers: Collection[str], form: CsvForm | None, base_folder: Path, remedy: str = PERSON
) -> Iterator[Warned]:
    """Yield a warning if each row of `files` counts as a person, but another column than `answers` has repeated ids."""
    from hushuffle.tables.inspection import inspect_parts  # noqa: PLC0415 - not without data
    from hushuffle.tables.reader import open_all  # noqa: PLC0415

    try:
        parts = tuple(part.tolerant() for part in open_all(files, base_folder=base_folder, called={}, form=form))
        shared = set.intersection(*(set(part.schema().names()) for part in parts)) - set(answers)
        names = [name for name in parts[0].schema().names() if name in shared]
        columns = inspect_parts("", parts, columns=names, form=form).people_columns if names else ()
        likely = next((column for column in columns if column.names_people), None)
    except DataError:
        likely = None
        yield Warned(
            key="repeated-ids-unknown",
            sentence="Other columns could not be read, so the check for people with several records was left out.",
            advice="Set population.person if a column identifies people.",
        )
    if likely is not None:
        name, records = json.dumps(likely.name, ensure_ascii=False), likely.present + likely.missing
        distinct = f"{'' if likely.exact else 'about '}{likely.distinct:,} distinct values"
        yield Warned(
            key="repeated-ids",
            sentence=(
                f"The data have {records:,} records but only {distinct} in column {name}. Each record counts as one "
                "person."
            ),
            advice=(
                f"If {name} identifies people, the guarantee of a person with several records is weaker than stated: "
                f"{remedy.format(name)}."
            ),
        )


def label_warnings(labels: Sequence[str], missing: str | None) -> Iterator[Warned]:
    """Yield a warning if categories look like marks of a missing answer; `missing` is the category of missing values.

    >>> print(next(label_warnings(["no", "yes", "N/A"], None)).sentence)
    These categories look like missing answers, but they count as ordinary answers: "N/A".
    """
    from hushuffle.tables.labels import marks_missing  # noqa: PLC0415 - not without data

    if marks := [
        json.dumps(label, ensure_ascii=False) for label in labels if label != missing and marks_missing(label)
    ]:
        yield Warned(
            key="missing-as-category",
            sentence=(
                f"These categories look like missing answers, but they count as ordinary answers: {', '.join(marks)}."
            ),
            advice=(
                f"Declare missing answers by the key `missing`: missing = {marks[0]} adds empty fields to it. "
                'Or empty these fields, remove the category and set missing = "drop".'
            ),
        )


def accuracy_warnings(protocol: Protocol, *, level: float = LEVEL) -> Iterator[Warned]:
    """Yield a warning if a value is statistically significant only if more than n/k people have it.

    The warning names a mechanism with a smaller error at the same local epsilon, if there is one.
    """
    table = protocol.randomizer.table
    if table is not None and table.numbers:  # chosen for means and quantiles: shares of single levels are by the way
        return
    try:
        if _small_share(protocol) == 0:
            return
    except UnsupportedProtocolError:  # the row about accuracy says why
        return
    except NumericalError:
        yield Warned(
            key="values-not-told-apart",
            sentence="The reports do not distinguish all values: frequencies cannot be estimated.",
            advice="Change the mechanism, or merge values, before the collection.",
        )
        return
    k, n, needed = protocol.randomizer.inputs, protocol.n, people_to_show(protocol, level=level)
    if needed <= n / k:
        return
    shows = (
        f"a value is statistically significant only if about {number(needed, up=True, digits=2)} people or more have it"
        if needed <= n
        else "not even a value that all people have is statistically significant"
    )
    better = more_accurate(protocol)
    yield Warned(
        key="rare-values-hidden",
        sentence=(
            f"Standard errors are large: {_error(protocol)} for a small share, while each of {k:,} equally frequent "
            f"categories has a share of {number(1 / k, digits=2)}. Thus {shows}."
        ),
        advice=(
            "More people, fewer categories or a larger epsilon would help."
            if better is None
            else _advice(better, people_to_show(better, level=level))
        ),
    )


def weighted_warnings(crowd: MixedProtocol) -> Iterator[Warned]:
    """Yield a warning that the estimate weights the groups of people, unless their weights are their shares."""
    bias = ByGroups.of(crowd.groups).bias
    if bias > _SAME:
        yield Warned(
            key="weighted-groups",
            sentence=(
                "The estimate weights people with less noise more. If answers differ between the groups, an estimate "
                f"is biased: its expectation differs from the share of all people by up to {number(bias, up=True)}."
            ),
            advice="For the shares in each group, collect each group by itself: its central epsilon is then larger.",
        )


def people_to_show(protocol: Protocol, *, level: float = LEVEL) -> float:
    """Return how many people must have a value for its expected count to be statistically significant at `level`."""
    drawn = protocol.shuffler.dummy_law
    n, (read, others) = protocol.n, counted(protocol, dummies=drawn.middle if drawn else None)
    return n * float(read.thresholds(n=n, dummies=int(others), chance=level / protocol.randomizer.inputs).max())


def more_accurate(protocol: Protocol) -> Protocol | None:
    """Return the protocol with the most accurate mechanism for rare values at the same local epsilon.

    The result is None if no mechanism is better by a tenth, or if only additional messages protect the values, since
    their number then depends on the mechanism. Of equally accurate mechanisms, the result has the smallest reports.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(
    ...     randomizer=hs.RandomizedResponse(k=1000, epsilon=2.0), shuffler=hs.UniformShuffle(), n=50_000
    ... )
    >>> better = more_accurate(survey)
    >>> better.randomizer.table.kind, round(float(predicted_standard_error(better, frequency=0.0)), 5)
    ('local-hashing', 0.00381)
    """
    local, k = protocol.randomizer.local_epsilon, protocol.randomizer.inputs
    if math.isinf(local) and protocol.shuffler.tossed is not None:
        return None
    candidates: list[tuple[float, int, Protocol]] = []
    for section in RANDOMIZERS.values():
        table = section.mechanism.table
        if table is None or table.numbers or "epsilon" not in table.settings:
            continue
        try:
            other = replace(protocol, randomizer=section.mechanism.from_settings(k, {"epsilon": local}))
        except InvalidInputError:  # there is none of this epsilon for so many values, or it takes more than an epsilon
            continue
        if other.randomizer.law().support is None:  # one for numbers
            continue
        candidates.append((_small_share(other), other.randomizer.layout.dtype.itemsize, other))
    alike = _ALIKE * min((error for error, _, _ in candidates), default=math.inf)
    error, _, best = min(
        (one for one in candidates if one[0] <= alike), key=lambda one: one[1], default=(math.inf, 0, None)
    )
    return best if _ALIKE * error <= _small_share(protocol) else None


def _small_share(protocol: Protocol) -> float:
    return float(predicted_standard_error(protocol, frequency=0.0))


def _error(protocol: Protocol) -> str:
    return number(_small_share(protocol), up=True, digits=2)


def _advice(better: Protocol, needed: float) -> str:
    table = better.randomizer.table
    assert table is not None  # it was found by it
    shows = f"a value is significant if about {number(needed, up=True, digits=2)} people have it"
    return (
        f'[randomizer] kind = "{table.kind}" has a smaller standard error at the same local epsilon: {_error(better)}'
        f"{f', {shows}' if needed <= better.n else ''}."
    )
