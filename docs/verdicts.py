"""Write the page of claims and verdicts from verdicts.json: python docs/verdicts.py [FOLDER of `reproduce all`]."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from hushuffle.papers import targets

HERE = Path(__file__).parent / "reference"
DATA, PAGE = HERE / "verdicts.json", HERE / "verdicts.md"
PAPERS = {
    "jurado2023": "Guessing (Jurado, Gonze, Alvim, Palamidessi 2023)",
    "buffling": "Bloom filters (technical details of the buffling package)",
    "murakami2021": "Re-identification (Murakami, Takahashi 2021)",
    "meehan2022": "Order (Meehan, Roy Chowdhury, Chaudhuri, Jha 2022)",
    "ladjel2021": "Traffic (Ladjel, Anciaux, Bellet, Scerri 2021)",
}
VERDICTS = ("confirmed", "contradicted", "differs on other data", "not testable here")
KEYS = ("target", "place", "sentence", "printed", "ours", "verdict", "reason", "data")
_HEAD = """# What the papers claim, and what came out

Every claim that `hushuffle reproduce all` tests, with its verdict. The same as data: [verdicts.json](verdicts.json).
`hushuffle reproduce TARGET` shows the figures behind a claim ([how](../how-to/reproduce.md)); formulas that we found
to be wrong are in the [errata](../explanation/errata.md).

A claim is **contradicted** only where it was tested as its paper makes it. On data that differ from the paper's, a
claim that does not hold **differs on other data**. What our data or the paper's text leave open is **not testable
here**.
"""


def claims() -> list[dict[str, Any]]:
    """Return the claims of the last full run."""
    found: list[dict[str, Any]] = json.loads(DATA.read_text("utf-8"))["claims"]
    return found


def page() -> str:
    """Return the page."""
    every, known = claims(), targets()
    lines = [_HEAD, "| paper | claims | " + " | ".join(VERDICTS) + " |", "|---" * (2 + len(VERDICTS)) + "|"]
    for paper, name in PAPERS.items():
        own = [claim for claim in every if claim["target"].startswith(f"{paper}/")]
        counts = [sum(claim["verdict"] == verdict for claim in own) for verdict in VERDICTS]
        lines.append(f"| {name} | {len(own)} | " + " | ".join(map(str, counts)) + " |")
    for paper, name in PAPERS.items():
        lines += ["", f"## {name}"]
        for target in known.values():
            if target.paper == paper:
                lines += ["", f"### {target.name}", "", f"{target.title[0].upper()}{target.title[1:]}.", ""]
                lines += [_line(claim) for claim in every if claim["target"] == target.name] or [
                    "No claim of the paper: this goes beyond it."
                ]
    return "\n".join(lines) + "\n"


def _line(claim: dict[str, Any]) -> str:
    printed = f" Printed: {claim['printed'].rstrip('.')}." if claim["printed"] else ""
    remarks = "".join(f" {claim[key]}" for key in ("reason", "data") if claim[key])
    text = f"{claim['sentence'].rstrip('.')} ({claim['place']}).{printed} Here: {claim['ours']}{remarks}"
    for character in "&\\*_^~<>|$`[]":
        text = text.replace(character, f"&#{ord(character)};")
    return f"- **{claim['verdict'].capitalize()}.** {text}"


def take(folder: Path) -> None:
    """Take over the claims of the studies in `folder`; those of other targets stay."""
    studies = [json.loads(file.read_text("utf-8")) for file in folder.glob("*/study.json")]
    new = [claim for study in studies for claim in study["claims"]]
    replaced = {study["key"] for study in studies}
    every = [*new, *(claim for claim in (claims() if DATA.exists() else []) if claim["target"] not in replaced)]
    order = list(targets())
    every = sorted((claim for claim in every if claim["target"] in order), key=lambda c: order.index(c["target"]))
    kept = [{key: claim[key] for key in KEYS} for claim in every]
    DATA.write_text(json.dumps({"schema_version": 1, "claims": kept}, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        take(Path(sys.argv[1]))
    PAGE.write_text(page(), "utf-8")
