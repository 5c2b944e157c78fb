"""What the claims quote are the papers' own words."""

from __future__ import annotations

import json
import os
import re
import unicodedata
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[2]
CLAIMS: Final[list[dict[str, Any]]] = json.loads((ROOT / "docs/reference/verdicts.json").read_text("utf-8"))["claims"]
TITLES: Final = {
    "jurado2023": "Analyzing the Shuffle Model through the Lens of Quantitative Information Flow",
    "buffling": "Technical Details",
    "murakami2021": "Toward evaluating re-identification risks in the local privacy model",
    "meehan2022": "Privacy Implications of Shuffling",
    "ladjel2021": "Mitigating Leakage from Data Dependent Communications",
}
"""How the text of each paper begins."""

GAP: Final = 1500
"""Most characters that one … leaves out: formulas are long in the texts."""


_FEWEST_WORDS: Final = 5


def normalised(text: str) -> str:
    """Return text without differences of whitespace and typography."""
    plain = unicodedata.normalize("NFKC", text.replace("…", "\0")).translate(str.maketrans("‘’“”–—−", "''\"\"---"))  # noqa: RUF001
    return re.sub(r"\s+", " ", plain).replace("\0", "…")


def places(quote: str, text: str) -> int:
    """Return at how many places the parts of a quotation stand in the text in this order, near each other."""
    parts = [re.escape(part.strip()) for part in normalised(quote).split("…")]
    return len(re.findall(f"(?={f'.{{0,{GAP}}}?'.join(parts)})", text))


@cache
def texts() -> dict[str, str]:
    """Return the papers' texts that are here: in HUSHUFFLE_PAPERS, or in seeds/ beside the data sets."""
    beside = Path(os.environ.get("HUSHUFFLE_DATA", "nowhere")).parent / "seeds"
    folder = Path(os.environ.get("HUSHUFFLE_PAPERS", beside))
    found = [normalised(file.read_text("utf-8")) for file in sorted(folder.glob("*.txt"))]
    return {paper: text for paper, title in TITLES.items() for text in found if title.lower() in text[:3000].lower()}


def test_every_claim_quotes_its_paper() -> None:
    assert [claim["target"] for claim in CLAIMS if not claim["quote"].strip("… ")] == []


@pytest.mark.parametrize("paper", TITLES)
def test_quotations_are_literal_and_stand_at_one_place(paper: str) -> None:
    if paper not in texts():
        pytest.skip("the text of the paper is not here: HUSHUFFLE_PAPERS names the folder of the texts")
    own = {claim["quote"] for claim in CLAIMS if claim["target"].startswith(f"{paper}/")}
    assert own
    assert sorted(quote for quote in own if places(quote, texts()[paper]) != 1) == [], "absent, or at several places"


def test_a_changed_word_is_no_quotation() -> None:
    text = normalised("The “privacy” is\n  ϵ=I max, as published—or not.")
    assert places('The "privacy" is … as published-or not.', text) == 1
    assert places("The privacy is as published", text) == 0
    assert places("as published … The", text) == 0
    assert places("Theorem … holds", "Theorem 2 holds. Theorem 3 holds.") == 2, "of which theorem?"


def test_quotations_are_clauses() -> None:
    assert [claim["quote"] for claim in CLAIMS if len(re.findall(r"\w+", claim["quote"])) < _FEWEST_WORDS] == []
