"""Write the page of errata from its data, docs/explanation/errata.json: python docs/errata.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
DATA = HERE / "explanation" / "errata.json"
PAGE = DATA.with_suffix(".md")

_OPENING = """# Errata

Where a published formula and enumeration of the mechanism disagree, we follow the enumeration. This page lists the
known places in the five papers behind the project, in the order of each paper, and common statements about shuffled
reports elsewhere. Some entries are slips of the pen, and some change a guarantee; each states the consequence for users
of the printed text. *Printed* gives the text as it reached us, in our words if it has no quotation marks. An entry
casts no doubt on the paper's other results.

Each entry names a test that shows the error. In a copy of the source, run `python -m pytest` followed by the name of
the test, or [`hushuffle reproduce`](../how-to/reproduce.md). [errata.json](errata.json) has the same entries as data.

| paper | entries |
|---|---:|
"""


def entries() -> dict[str, Any]:
    """Return the data: `papers` by name, and `errata`, sorted by paper and place."""
    data: dict[str, Any] = json.loads(DATA.read_text("utf-8"))
    return data


def page() -> str:
    """Return the text of the page."""
    data = entries()
    parts, rows = [], []
    for name, paper in data["papers"].items():
        mine = [entry for entry in data["errata"] if entry["paper"] == name]
        rows.append(f"| [{paper['authors']}](#{name}) | {len(mine)} |\n")
        parts.append(f'<a id="{name}"></a>\n\n## {paper["authors"]}\n\n*{paper["title"]}*\n')
        parts += map(_block, mine)
    return _OPENING + "".join(rows) + "\n" + "\n".join(parts)


def _block(entry: dict[str, Any]) -> str:
    tests = ", ".join(f"`{f'hushuffle reproduce {name}' if '::' not in name else name}`" for name in entry["shown_by"])
    proof = entry.get("proof", "").removeprefix("docs/")
    link = f"; [proof](../{proof})" if proof else ""
    lines = [
        f'<a id="{entry["id"]}"></a>\n\n### {_text(entry["place"])}\n',
        f"- **Printed:** {_text(entry['printed'])}",
        f"- **Corrected:** {_text(entry['corrected'])}",
        f"- **Consequence:** {_text(entry['consequence'])}",
        f"- **Shown by** {tests}{link}",
    ]
    return "\n".join(lines) + "\n"


def _text(text: str) -> str:
    return text.replace("*", r"\*")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
