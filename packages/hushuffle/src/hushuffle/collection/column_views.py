"""Collect views of the columns of publishers' filters: count the columns, add dummies, and estimate from the counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hushuffle._checks import fail
from hushuffle.collection.released import document_in, document_text, is_count, read_document
from hushuffle.collection.request import MANIFEST, Request
from hushuffle.errors import DataError, InvalidInputError, NumericalError, SpecificationError, UnsupportedProtocolError
from hushuffle.estimation.column_views import consistent
from hushuffle.estimation.reach import Reach
from hushuffle.estimation.reach_questions import ReachQuestion, answered, questions_of
from hushuffle.files.causes import refused
from hushuffle.files.private_files import publish, workplace
from hushuffle.mechanisms.column_views import ColumnCounts, ColumnViews
from hushuffle.mechanisms.sketches import BloomFilter
from hushuffle.mechanisms.sketches.filters import same_design
from hushuffle.model import Bound
from hushuffle.questions import bloom
from hushuffle.specification import Specification, parse
from hushuffle.specification._base import unfit
from hushuffle.specification.reach import AudiencePopulation, with_dummies
from hushuffle.tables.sketch_files import load_filter

CONTENT: Final = "counts of columns"
CHUNK: Final = 1 << 20
"""Number of columns in memory at a time; a multiple of 8."""

_RELATION: Final = "add or remove one person, from all audiences"


@dataclass(frozen=True, kw_only=True)
class CollectedViews:
    """A release of views: the design, its central epsilon for one person, and the written file."""

    design: ColumnViews
    central: Bound
    delta: float
    file: Path


def collect_views(specification: Specification, *, out: Path, request: Request) -> CollectedViews:
    """Count the columns of the publishers' files, add dummies, and write `manifest.json` into the new folder `out`.

    `request.sources` has NAME=FILE for each publisher: a Bloom filter that is not flipped (.npz), or the number of
    contacts for each bit, shape (bits,) (.npy). The randomness is fresh and cryptographic. Files of contacts are read
    `CHUNK` columns at a time; of filters, the packed bits are in memory.

    Raises:
        SpecificationError: the specification has no views with dummies, or assumes no audiences.
        DataError: epsilon is above its target, or a file is missing, unfit, or of another design. Nothing is released.
    """
    population, design = study_of(specification)
    central = bloom.views_epsilon(design, delta=specification.targets.delta)
    wanted = specification.targets.epsilon
    if wanted is not None and central.upper > wanted:
        fail(
            f"Central epsilon is up to {central.upper:.4g} at delta = {specification.targets.delta:g}, above "
            f"targets.epsilon = {wanted:g}: no filters were read. Use wider distributions of dummies."
        )
    with workplace(out) as place:
        folder = place / "release"
        folder.mkdir()
        columns = _Columns.opened(population.names, design, request)
        counts = design.release(columns.chunks(request))
        (folder / MANIFEST).write_text(_manifest(specification, counts, central), encoding="utf-8")
        publish(folder, out)
    request.tell("done", 1.0)
    return CollectedViews(design=design, central=central, delta=specification.targets.delta, file=out / MANIFEST)


def study_of(specification: Specification) -> tuple[AudiencePopulation, ColumnViews]:
    """Return the publishers of a reach study, and the views that it releases.

    Raises:
        SpecificationError: publishers flip their bits, or the specification names files of identifiers.
    """
    population, shuffler = specification.population, specification.shuffler
    if not with_dummies(specification.plain()["shuffler"]):
        hint = "Publishers flip their own filters with `hs.BloomFilter.flip`. Run assess to rehearse the study."
        unfit("shuffler.kind", 'must be "augmented" to collect a reach study', f'"{shuffler.kind}"', hint)
    if not isinstance(population, AudiencePopulation):
        hint = "The shuffler must not have identifiers. Plan with people and audiences."
        unfit("population", "must have `audiences` to collect a reach study", "publishers", hint)
    each = shuffler.build().value_law
    assert each is not None  # the augmented shuffle has one
    return population, population.shown(each)


@dataclass(frozen=True, kw_only=True)
class _Columns:
    """The publishers' entries, in the order of the specification: packed bits, or a file of contacts."""

    bits: int
    entries: tuple[BloomFilter | Path, ...]
    patterns: bool
    """Whether all publishers sent filters."""

    @classmethod
    def opened(cls, names: Sequence[str], design: ColumnViews, request: Request) -> _Columns:
        files = _named(request.sources, names)
        entries = tuple(_entries(name, files[name], design) for name in names)
        filters = {name: each for name, each in zip(names, entries, strict=True) if isinstance(each, BloomFilter)}
        for name, each in filters.items():
            try:
                same_design(next(iter(filters.values())), each)
            except InvalidInputError as error:
                fail(f"{files[name]}, the filter of {name}: {error}")
        counted = {place for view in design.views if view.shows == "contacts" for place in view.publishers}
        bits_only = [names[place] for place in sorted(counted) if names[place] in filters]
        if bits_only:
            fail(
                f"A view shows contacts, but {', '.join(bits_only)} sent filters of bits. Pass a .npy file with the "
                "number of contacts of each column."
            )
        return cls(bits=design.columns, entries=entries, patterns=len(filters) == len(names))

    def chunks(self, request: Request) -> Iterator[npt.NDArray[Any]]:
        """Yield bit patterns, shape (c,), or, if a publisher sent contacts, entries, shape (c, publishers)."""
        for start in range(0, self.bits, CHUNK):
            request.tell("counting columns", start / self.bits)
            stop = min(start + CHUNK, self.bits)
            if not self.patterns:
                yield np.stack([_part(each, start, stop).astype(np.uint16) for each in self.entries], axis=1)
                continue
            columns = np.zeros(stop - start, dtype=np.int32)
            for bit, each in enumerate(self.entries):
                columns |= _part(each, start, stop).astype(np.int32) << bit
            yield columns


def _named(sources: Sequence[str], names: Sequence[str]) -> dict[str, Path]:
    pairs = [source.partition("=") for source in sources]
    given = [name for name, _, _ in pairs]
    if sorted(given) != sorted(names) or not all(file for _, _, file in pairs):
        fail(
            "A reach study needs the file of each publisher once: --input NAME=FILE for "
            f"{', '.join(names)}. Files are unflipped Bloom filters (.npz) or numbers of contacts (.npy)."
        )
    return {name: Path(file).expanduser() for name, _, file in pairs}


def _entries(name: str, file: Path, design: ColumnViews) -> BloomFilter | Path:
    if file.suffix == ".npy":
        contacts = _contacts(file)
        if contacts.shape != (design.columns,) or contacts.dtype not in (np.uint8, np.uint16):
            fail(
                f"{file}, the contacts of {name}, must have shape ({design.columns},) and type uint8 or uint16, got "
                f"{contacts.shape} and {contacts.dtype}."
            )
        return file
    try:
        sketch = BloomFilter(**load_filter(file))
    except InvalidInputError as error:
        fail(f"{file}, the filter of {name}: {error}")
    if (sketch.bits, sketch.hashes) != (design.columns, design.hashes):
        fail(
            f"{file}, the filter of {name}, has {sketch.bits:,} bits and {sketch.hashes} hash functions; the "
            f"specification has {design.columns:,} and {design.hashes}."
        )
    if sketch.is_flipped:
        fail(f"{file}, the filter of {name}, is flipped. The shuffler adds dummies to filters that are not flipped.")
    return sketch


def _contacts(file: Path) -> npt.NDArray[Any]:
    with refused(file, f"{file} is not an array of NumPy, or it is truncated or damaged."):
        return np.lib.format.open_memmap(file, mode="r")


def _part(entries: BloomFilter | Path, start: int, stop: int) -> npt.NDArray[Any]:
    """A file is mapped for each part, so that the pages of earlier parts are not in memory."""
    if isinstance(entries, BloomFilter):
        return np.unpackbits(entries.packed[start // 8 : -(-stop // 8)], count=stop - start)
    return _contacts(entries)[start:stop]


def _manifest(specification: Specification, counts: ColumnCounts, central: Bound) -> str:
    fields = {
        "central": {
            "epsilon": central.as_dict(),
            "delta": specification.targets.delta,
            "relation": _RELATION,
            "per": "person",
        },
        "local_epsilon": "infinity",
        "coins": "secure",
        "counts": [[int(count) for count in view] for view in counts.counts],
        "specification": specification.effective(),
    }
    return document_text(CONTENT, fields, indent=None)


def is_of_views(folder: Path) -> bool:
    """Return whether `collect_views` wrote `folder`."""
    return document_in(folder / MANIFEST, CONTENT) is not None


@dataclass(frozen=True, kw_only=True)
class ReachAnswers:
    """The answers of a release of publishers `names` by question; `refused`: why other questions have no answer."""

    title: str | None
    names: tuple[str, ...]
    answers: Mapping[ReachQuestion, Reach]
    refused: Mapping[ReachQuestion, str]


def estimate_views(folder: Path) -> ReachAnswers:
    """Return all answers of a release that `collect_views` wrote. Files are not signed.

    Unions are consistent: none is smaller than a union of some of its publishers.

    Raises:
        DataError: the file is missing, or has been edited.
    """
    path = folder / MANIFEST
    document = read_document(path, CONTENT)
    try:
        specification = parse(str(document.get("specification")), file=f"the specification in {path}")
        population, design = study_of(specification)
    except SpecificationError as error:
        raise DataError(str(error)) from error
    listed = document.get("counts")
    sizes = [view.cells for view in design.views]
    whole = isinstance(listed, list) and all(isinstance(view, list) and all(map(is_count, view)) for view in listed)
    if not whole or not isinstance(listed, list) or [len(view) for view in listed] != sizes:
        fail(f"{path}: `counts` and `specification` contradict each other: the file may have been edited.")
    counts = ColumnCounts(design=design, counts=tuple(np.array(view, dtype=np.int64) for view in listed))
    answers: dict[ReachQuestion, Reach] = {}
    reasons: dict[ReachQuestion, str] = {}
    for question in questions_of(population.names, design):
        try:
            answers[question] = answered(counts, question)
        except NumericalError as error:
            reasons[question] = str(error)
        except UnsupportedProtocolError:  # the union of all, which no view shows
            continue
    unions = [question for question in answers if question.question == "reach"]
    answers |= dict(zip(unions, consistent([answers[question] for question in unions]), strict=True))
    return ReachAnswers(title=specification.title, names=population.names, answers=answers, refused=reasons)
