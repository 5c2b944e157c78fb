"""Assess a deployment of one column, several columns or a sum, from a file, tables or a parsed specification."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hushuffle import _checks
from hushuffle.assessment.assess import assess as assess_one
from hushuffle.assessment.columns import assess_columns
from hushuffle.assessment.sums import assess_sum
from hushuffle.model import Progress, Report
from hushuffle.specification import Specification
from hushuffle.specification.reading import Collection, parse_collection, text_of
from hushuffle.specification.sums import SumSpecification, is_sum, load_deployment, parse_sum


def assess(
    deployment: str | os.PathLike[str] | Mapping[str, Any] | Specification | Collection | SumSpecification,
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
    if isinstance(deployment, SumSpecification):
        return assess_sum(deployment, base_folder=folder, progress=progress)
    if isinstance(deployment, Specification):
        return assess_one(deployment, base_folder=folder, progress=progress)
    _checks.of_type("deployment", deployment, Collection, Specification, str, Mapping)
    if deployment.several:
        return assess_columns(deployment, base_folder=folder, progress=progress)
    return assess_one(deployment.columns[""], base_folder=folder, progress=progress)
