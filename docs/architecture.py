"""Draw the rooms of the source code from the contract that `make check` enforces: python docs/architecture.py."""

from __future__ import annotations

import ast
import textwrap
import tomllib
from html import escape
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
SOURCE = ROOT / "packages/hushuffle/src/hushuffle"
PICTURE = HERE / "architecture.svg"

_WIDTH, _GAP, _PAD, _LINE = 960, 10, 12, 17
_JOBS = {"assessment", "collection", "attacks", "cli"}
_PACKAGES = {start.parent.name: start.parent for start in ROOT.glob("packages/*/src/*/__init__.py")}


def layers() -> list[list[str]]:
    """Return the rooms, the highest layer first; rooms of one layer do not import each other."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    contracts = {contract["id"]: contract.get("layers", ()) for contract in settings}
    packages = [[package] for package in contracts["packages"] if package != SOURCE.name]
    rooms = [[room.strip() for room in layer.split("|")] for layer in contracts["layers"]]
    return [*packages, *rooms, ["shuffle_certificate"]]


def place(room: str) -> Path:
    """Return the folder or file of a room of the library, or the folder of another package."""
    folder = _PACKAGES.get(room, SOURCE / room)
    return folder if folder.is_dir() else folder.with_suffix(".py")


def purpose(room: str) -> str:
    """Return the first sentence of a room's docstring."""
    file = place(room)
    text = ast.get_docstring(ast.parse((file / "__init__.py" if file.is_dir() else file).read_text("utf-8"))) or ""
    return text.split("\n\n")[0].replace("\n", " ").replace("`", "").split(";")[0].rstrip(".") + "."


def picture() -> str:
    """Return the picture: one row for each layer, a box for each room; a room imports only rooms of lower rows."""
    parts: list[str] = []
    top = _GAP
    for layer in layers():
        width = (_WIDTH - _GAP * (len(layer) + 1)) / len(layer)
        texts = [textwrap.wrap(purpose(room), int((width - 2 * _PAD) / 6.4)) for room in layer]
        height = 2 * _PAD + _LINE * (1 + max(map(len, texts)))
        for column, (room, lines) in enumerate(zip(layer, texts, strict=True)):
            left = _GAP + column * (width + _GAP)
            kind = "package" if room in _PACKAGES else "job" if room in _JOBS else "layer"
            parts.append(
                f'<rect class="{kind}" x="{left:.0f}" y="{top}" width="{width:.0f}" height="{height}" rx="6"/>'
            )
            for row, line in enumerate([f"{room}{place(room).suffix or '/'}", *lines]):
                style = ' class="name"' if row == 0 else ""
                y = top + _PAD + _LINE * row + 12
                parts.append(f'<text{style} x="{left + _PAD:.0f}" y="{y}">{escape(line)}</text>')
        top += height + _GAP
    style = (
        "text{font:13px sans-serif;fill:#1b2a33}.name{font-weight:bold;font-size:14px}"
        "rect{stroke:#607d8b;stroke-width:1}.job{fill:#fff4e0}.package{fill:#e3f2e6}.layer{fill:#eceff1}"
    )
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {top}" role="img" '
        f'aria-label="The rooms of hushuffle in layers">\n<style>{style}</style>\n'
        f'<rect width="{_WIDTH}" height="{top}" fill="white" stroke="none"/>\n{body}\n</svg>\n'
    )


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
