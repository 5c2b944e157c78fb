"""From folders of released reports to tallies: of one column or several, of one collection or many batches."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hushuffle._checks import fail
from hushuffle.collection.estimate_reports import Count, Progress, Tally, tally_reports
from hushuffle.collection.manifest import columns_in
from hushuffle.collection.request import MANIFEST, REPORTS


def tally_columns(
    sources: Sequence[Path],
    *,
    manifest: Path | None = None,
    progress: Progress | None = None,
    count: Count | None = None,
) -> dict[str, Tally]:
    """Return the support counts of all reports in `sources`, added up for each column, by the name of its folder.

    Reports of one column that was collected alone have the name "". A folder of batches stands for all of them.

    Args:
        sources: as `tally_reports`; also folders of several columns, and folders of batches.
        manifest: as `tally_reports`; not with several columns.
        progress: told what is going on.
        count: as `tally_reports`.

    Raises:
        DataError: as `tally_reports`; or some sources have columns that others have not.
        UnsupportedProtocolError: as `tally_reports`.
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
