"""scikit-learn, loaded when used, on one thread."""

from __future__ import annotations

import importlib
from contextlib import AbstractContextManager
from typing import Any

from hushuffle.errors import MissingDependencyError


def library(name: str) -> Any:
    """Return the module `name` of scikit-learn or of what comes with it.

    Raises:
        MissingDependencyError: scikit-learn is not installed.

    >>> library("sklearn.ensemble").__name__
    'sklearn.ensemble'
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        message = "Learning from released values needs scikit-learn. Install it with: pip install 'hushuffle[attacks]'"
        raise MissingDependencyError(message) from error


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which learners use one thread.

    Small trees gain nothing from more, and where the processors are busy, threads that wait for each other took
    thirty times as long.
    """
    limits: AbstractContextManager[Any] = library("threadpoolctl").threadpool_limits(limits=1)
    return limits
