"""Write the page of claims and verdicts from verdicts.json: python docs/verdicts.py [FOLDER of `reproduce all`]."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from hushuffle.model import VERDICTS, Claim
from hushuffle.model.claim import distinct
from hushuffle_papers.registry import targets

HERE = Path(__file__).parent / "reference"
DATA, PAGE = HERE / "verdicts.json", HERE / "verdicts.md"
PAPERS = {
    "jurado2023": "Guessing (Jurado, Gonze, Alvim, Palamidessi 2023)",
    "buffling": "Bloom filters (technical details of the buffling package)",
    "murakami2021": "Re-identification (Murakami, Takahashi 2021)",
    "meehan2022": "Order (Meehan, Roy Chowdhury, Chaudhuri, Jha 2022)",
    "ladjel2021": "Traffic (Ladjel, Anciaux, Bellet, Scerri 2021)",
}
NOTATION = {
    "jurado2023": "N is the noise, S the shuffle, and NS is the noise followed by the shuffle. The reduced shuffle S^r "
    "releases only how many people hold each value, and N^r is noise on these counts. A is refined by B if B leaks no "
    "more than A. The relations of channels are theorems of the paper; here they are checked exactly at small sizes."
}
"""The symbols of a paper's claims."""

KEYS = ("target", "place", "quote", "sentence", "printed", "ours", "verdict", "reason", "data", "repeats")
_HEAD = """# Verdicts on the papers' claims

This page lists every claim that `hushuffle reproduce all` tests, with its verdict. [verdicts.json](verdicts.json) has
the same claims as data, with the papers' literal words. `hushuffle reproduce TARGET` shows the figures behind a claim
([how](../how-to/reproduce.md)); formulas that are wrong are in the [errata](../explanation/errata.md).

**Confirmed** and **contradicted** rest on the paper's own data, on a proof or on an exact computation. On other data,
or in settings of ours where the paper gives none, a claim **holds on other data** or **differs on other data**. A claim
that our data or the paper's text leave open is **not testable**. A claim tested in several studies or variants counts
once, with the first verdict; a sentence about several figures or data sets is one claim for each.
"""


def claims() -> list[dict[str, Any]]:
    """Return the claims of the last full run."""
    found: list[dict[str, Any]] = json.loads(DATA.read_text("utf-8"))["claims"]
    return found


def page() -> str:
    """Return the page."""
    every, known = claims(), targets()
    lines = [_HEAD, "| paper | claims | " + " | ".join(VERDICTS) + " |", "|---" * (2 + len(VERDICTS)) + "|"]
    once = distinct([Claim(**claim) for claim in every])
    firsts = {(claim.target, claim.quote, claim.verdict) for claim in once}
    for paper, name in (*PAPERS.items(), ("", "all")):
        own = Counter(claim.verdict for claim in once if claim.target.startswith(paper))
        lines.append(f"| {name} | {own.total()} | " + " | ".join(str(own[verdict]) for verdict in VERDICTS) + " |")
    for paper, name in PAPERS.items():
        lines += ["", f"## {name}", *(["", _escaped(NOTATION[paper])] if paper in NOTATION else [])]
        for target in known.values():
            if target.paper == paper:
                lines += ["", f"### {target.name}", "", f"{target.title[0].upper()}{target.title[1:]}.", ""]
                lines += _study([claim for claim in every if claim["target"] == target.name], firsts)
    return "\n".join(lines) + "\n"


def _study(own: list[dict[str, Any]], firsts: set[tuple[str, str, str]]) -> list[str]:
    """Return the lines of one study; what its claims were tested on is said once if it is the same for all."""
    if not own:
        return ["No claim of the paper is tested here."]
    data = {claim["data"] for claim in own}
    shared = data.pop() if len(own) > 1 and len(data) == 1 else ""
    return [*([f"Data: {_escaped(shared)}", ""] if shared else []), *(_line(claim, shared, firsts) for claim in own)]


def _line(claim: dict[str, Any], shared: str, firsts: set[tuple[str, str, str]]) -> str:
    """Return the line of a claim; a test with the same result as the one that it repeats only names that one."""
    printed = f" Printed: {claim['printed'].rstrip('.')}." if claim["printed"] else ""
    remarks = "".join(f" {claim[key]}" for key in ("reason", "data") if claim[key] and claim[key] != shared)
    what = f"{claim['sentence'].rstrip('.')} ({claim['place']}"
    elsewhere = claim["repeats"] not in ("", claim["target"])
    if elsewhere and (claim["repeats"], claim["quote"], claim["verdict"]) in firsts:
        text = f"{what}), as in {claim['repeats']}."
    else:
        again = f"; a variant of {claim['repeats']}" if elsewhere else "; a variant" * bool(claim["repeats"])
        text = f"{what}{again}).{printed} Here: {claim['ours']}{remarks}"
    return f"- **{claim['verdict'].capitalize()}.** {_escaped(text)}"


def _escaped(text: str) -> str:
    for character in "&\\*_^~<>|$`[]":
        text = text.replace(character, f"&#{ord(character)};")
    return text


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
