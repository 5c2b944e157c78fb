"""`Deployment`: what five verbs ask of a file, whatever kind of deployment the file describes."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hushuffle import _checks
from hushuffle.model import Progress, Report
from hushuffle.specification import ReachPopulation, Specification
from hushuffle.specification._base import unfit
from hushuffle.specification.reading import Collection, parse_collection, text_of
from hushuffle.specification.sums import SumSpecification, is_sum, load_deployment, parse_sum

if TYPE_CHECKING:
    from hushuffle.assessment.facts import Compared
    from hushuffle.assessment.minimum_batch import SmallestBatch
    from hushuffle.assessment.targets import Choice

# A verb loads only what it needs: each method imports the module that answers it.
# ruff: noqa: PLC0415


class Deployment(ABC):
    """A deployment and the folder of its data; a kind of deployment answers each verb, or says why not."""

    def __init__(self, folder: Path) -> None:
        self.folder: Final = folder

    @abstractmethod
    def assess(self, progress: Progress | None = None) -> Report:
        """Return what each adversary learns, and the accuracy."""

    @abstractmethod
    def calibrate(self, progress: Progress | None = None) -> Choice:
        """Return what the targets allow."""

    @abstractmethod
    def compared(self, name: str, colluders: int) -> Compared:
        """Return the figures and facts for a comparison, with this number of colluders (0: its own)."""

    def colluders(self) -> int:
        """Return the number of colluding people that the guarantee expressly allows; 0 if it names none."""
        return 0

    @abstractmethod
    def smallest_batch(self) -> SmallestBatch:
        """Return the smallest number of people with whom the target is met."""

    @abstractmethod
    def audit(self, **options: Any) -> Report:
        """Return the tests of all claims; `options` are those of `audit_specification`."""


class _OneColumn(Deployment):
    """One column: categories or numbers, behind any shuffler."""

    def __init__(self, specification: Specification, folder: Path) -> None:
        super().__init__(folder)
        self._file = specification

    def assess(self, progress: Progress | None = None) -> Report:
        from hushuffle.assessment.assess import assess

        return assess(self._file, base_folder=self.folder, progress=progress)

    def calibrate(self, progress: Progress | None = None) -> Choice:
        from hushuffle.assessment.calibrate import calibrate, calibrate_messages
        from hushuffle.assessment.messages import has_messages_to_choose

        if has_messages_to_choose(self._file):
            return calibrate_messages(self._file, base_folder=self.folder)
        return calibrate(self._file, base_folder=self.folder, progress=progress)

    def compared(self, name: str, colluders: int) -> Compared:
        from hushuffle.assessment.facts import of_column

        return of_column(name, self._file, self.folder, colluders)

    def smallest_batch(self) -> SmallestBatch:
        from hushuffle.assessment.minimum_batch import of_column

        return of_column(self._file, self.folder)

    def audit(self, **options: Any) -> Report:
        from hushuffle.attacks.audit_specification import audit_specification

        return audit_specification(self._file, base_folder=self.folder, **options)


class _Reach(_OneColumn):
    """Audiences of publishers, whose people send no reports."""

    def compared(self, name: str, colluders: int) -> Compared:
        from hushuffle.assessment.facts import of_reach

        return of_reach(name, self._file, self.folder, colluders)

    def calibrate(self, progress: Progress | None = None) -> Choice:
        from hushuffle.assessment.reach.calibrate import calibrate_reach

        return calibrate_reach(self._file, base_folder=self.folder, progress=progress)

    def smallest_batch(self) -> SmallestBatch:
        hint = "Its columns of bits hide people, and their number is population.bits. Run calibrate for the flips."
        unfit("population", "must be people with one value each for minimum-batch", "a study of reach", hint)

    def audit(self, **options: Any) -> Report:
        from hushuffle.attacks.audit_specification import audit_reach

        options.pop("delta")
        return audit_reach(self._file, base_folder=self.folder, **options)


class _SeveralColumns(Deployment):
    """Several columns of the same people, shuffled independently."""

    def __init__(self, collection: Collection, folder: Path) -> None:
        super().__init__(folder)
        self._file = collection

    def assess(self, progress: Progress | None = None) -> Report:
        from hushuffle.assessment.columns import assess_columns

        return assess_columns(self._file, base_folder=self.folder, progress=progress)

    def calibrate(self, progress: Progress | None = None) -> Choice:
        from hushuffle.assessment.columns import calibrate_columns

        return calibrate_columns(self._file, base_folder=self.folder, progress=progress)

    def compared(self, name: str, colluders: int) -> Compared:
        from hushuffle.assessment.facts import of_columns

        return of_columns(name, self._file, self.folder, colluders)

    def smallest_batch(self) -> SmallestBatch:
        from hushuffle.assessment.minimum_batch import of_columns

        return of_columns(self._file, self.folder)

    def audit(self, **options: Any) -> Report:
        from hushuffle.attacks.audit_specification import audit_columns

        return audit_columns(self._file.columns, base_folder=self.folder, **options)


class _Sum(Deployment):
    """A sum of numbers by several messages."""

    def __init__(self, specification: SumSpecification, folder: Path) -> None:
        super().__init__(folder)
        self._file = specification

    def assess(self, progress: Progress | None = None) -> Report:
        from hushuffle.assessment.sums import assess_sum

        return assess_sum(self._file, base_folder=self.folder, progress=progress)

    def calibrate(self, progress: Progress | None = None) -> Choice:  # noqa: ARG002 - takes no time
        from hushuffle.assessment.sum_calibration import calibrate_sum

        return calibrate_sum(self._file, base_folder=self.folder)

    def colluders(self) -> int:
        n = self._file.asked.read(self.folder).n
        return n - self._file.build(n).needed

    def compared(self, name: str, colluders: int) -> Compared:
        from hushuffle.assessment.facts import of_sum

        return of_sum(name, self._file, self.folder, colluders)

    def smallest_batch(self) -> SmallestBatch:
        from hushuffle.assessment.minimum_batch import of_sum

        return of_sum(self._file, self.folder)

    def audit(self, **options: Any) -> Report:
        from hushuffle.attacks.audit_specification import audit_sum

        return audit_sum(self._file, base_folder=self.folder, **options)


AnyDeployment = Specification | Collection | SumSpecification


def deployment_of(parsed: AnyDeployment, folder: Path) -> Deployment:
    """Return the deployment of a parsed file, whose data are in `folder`."""
    if isinstance(parsed, SumSpecification):
        return _Sum(parsed, folder)
    if isinstance(parsed, Collection) and parsed.several:
        return _SeveralColumns(parsed, folder)
    column = parsed.columns[""] if isinstance(parsed, Collection) else parsed
    return (_Reach if isinstance(column.population, ReachPopulation) else _OneColumn)(column, folder)


def opened(path: str | os.PathLike[str]) -> Deployment:
    """Return the deployment in a TOML file."""
    return deployment_of(load_deployment(os.fspath(path)), Path(path).parent)


def assess(
    deployment: str | os.PathLike[str] | Mapping[str, Any] | AnyDeployment,
    *,
    base_folder: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Report:
    """Return the report on a deployment: what each adversary learns, and how accurate the estimates are.

    The command `hushuffle assess` writes the same report. A notebook shows the report as tables, and
    `hushuffle.report.write` writes its files. If a question has no answer for the mechanism, a row gives the reason.

    Args:
        deployment: the name of a TOML file, its tables, or the result of `hushuffle.specification.load` or `parse`.
        base_folder: the folder against which relative paths of data are resolved; that of the file by default.
        progress: receives the current step and the share done, from 0 to 1.

    Raises:
        DataError, MissingDependencyError: the data cannot be used.
        SpecificationError: the file is no specification, or does not fit the data.
        InvalidInputError: `deployment` has another type.

    >>> import hushuffle as hs
    >>> report = hs.assess({
    ...     "population": {"n": 900, "k": 3},
    ...     "randomizer": {"kind": "randomized-response", "epsilon": 1.0},
    ...     "shuffler": {"kind": "uniform"},
    ...     "targets": {"delta": 1e-6},
    ... })
    >>> print(report.findings[0].bound)
    0.1381 to 0.1383 nats (certified bracket)
    """
    folder = Path() if base_folder is None else Path(base_folder)
    if isinstance(deployment, str | os.PathLike):
        if base_folder is None:
            folder = Path(deployment).parent
        deployment = load_deployment(os.fspath(deployment))
    elif isinstance(deployment, Mapping):
        text = text_of("deployment", deployment)
        if is_sum(text):
            deployment = parse_sum(text, file="deployment")
        else:
            deployment = parse_collection(text, file="deployment", base_folder=folder)
    _checks.of_type("deployment", deployment, Collection, Specification, SumSpecification, str, Mapping)
    return deployment_of(deployment, folder).assess(progress)
