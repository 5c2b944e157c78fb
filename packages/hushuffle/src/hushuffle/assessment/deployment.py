"""Open a file as the deployment that it describes, and assess it; no other file asks which kind of deployment it is."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

from hushuffle import _checks
from hushuffle.model import Progress, Report
from hushuffle.specification import Specification
from hushuffle.specification.mixed import AnyFile, load_deployment, parse_deployment
from hushuffle.specification.reading import text_of

if TYPE_CHECKING:
    from hushuffle.assessment.chapters import Deployment

AnyDeployment = AnyFile | Specification
_CLASSES: Final = {
    "column": "assess:OneColumn",
    "columns": "columns:SeveralColumns",
    "groups": "mixed:MixedGroups",
    "reach": "reach.study:ReachStudy",
    "sum": "total:Total",
}
"""The module and class of each kind of deployment; only the code of a deployment's own kind is loaded."""


def deployment_of(parsed: AnyDeployment, folder: Path) -> Deployment:
    """Return the deployment of a parsed file, whose data are in `folder`."""
    module, _, name = _CLASSES[parsed.kind_of_deployment].partition(":")
    deployment: Deployment = getattr(import_module(f"hushuffle.assessment.{module}"), name)(parsed.deployed, folder)
    return deployment


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
        base_folder: the folder against which relative paths of data are resolved; by default the folder of the file.
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
        deployment = parse_deployment(text, file="deployment", base_folder=folder)
    _checks.of_type("deployment", deployment, *get_args(AnyDeployment), str, Mapping)
    return deployment_of(deployment, folder).assess(progress)
