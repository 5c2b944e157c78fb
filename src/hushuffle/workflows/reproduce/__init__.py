"""The papers' tables and figures, recomputed: `targets` lists them, `reproduce` computes one."""

from __future__ import annotations

import importlib
from typing import Final

from hushuffle.model import Study
from hushuffle.workflows.reproduce.base import Request, Target

__all__ = ["Request", "Target", "reproduce", "targets"]

_MODULES: Final[tuple[str, ...]] = ()
"""Modules of this package with a tuple TARGETS."""


def targets() -> dict[str, Target]:
    """Return every target by name, sorted."""
    modules = [importlib.import_module(f"{__name__}.{name}") for name in _MODULES]
    found: list[Target] = [target for module in modules for target in module.TARGETS]
    return {target.name: target for target in sorted(found, key=lambda target: target.name)}


def reproduce(name: str, request: Request) -> Study:
    """Return the study of the target `name`."""
    return targets()[name].build(request)
