"""`hushuffle explore`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from hushuffle.cli.console import Exit, progress


def explore(specification: Path, /, *, out: Path | None = None) -> Exit:
    """Write a page with sliders for people, noise, dummies and colluders.

    Examples (to create these files, first run: hushuffle examples ./examples):
      hushuffle explore examples/affairs.toml
      hushuffle explore examples/dummies.toml --out hushuffle-out/dummies.html

    The page shows what each adversary learns, how accurate the estimates are, and
    whether a figure is exact or a bound. It offers the specification for download,
    and is one file that never uses the network. Private values are never read.

    Args:
        specification: a TOML file as for assess, of one column.
        out: file that ends in .html, or folder for explorer.html (default: hushuffle-out/explore-NAME).
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # for its small matrices, more threads take longer together
    place = Path("hushuffle-out") / f"explore-{specification.stem}" if out is None else out
    file = place if place.suffix == ".html" else place / "explorer.html"
    from hushuffle.files.private_files import refuse_file, refuse_folder  # noqa: PLC0415 - only when needed

    refuse_folder(file.parent)
    if file.is_dir():
        refuse_file(file)
    # Imported here, so that `hushuffle --help` does not wait for numerics.
    from hushuffle import report  # noqa: PLC0415
    from hushuffle.assessment.explore import explore as run  # noqa: PLC0415

    with progress(enabled=sys.stderr.isatty()) as tell:
        explorer = run(specification, progress=tell)
    report.write_explorer(explorer, file)
    sys.stdout.write(f"Wrote {file}: open it in a browser.\n")
    return Exit.DONE
