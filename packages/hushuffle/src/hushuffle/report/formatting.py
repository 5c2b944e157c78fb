"""Functions that format text and numbers in the same way for every output format."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from hushuffle.model import Bound, Population, Unanswered, Witness

KINDS_EXPLAINED: tuple[tuple[str, str], ...] = (
    ("exact", "This is the exact value, up to floating-point error."),
    ("certified bracket", "Both bounds are proven: the true value lies between them."),
    ("upper bound", "This upper bound is proven: the true value is at most this."),
    ("lower bound", "This lower bound is proven: the true value is at least this."),
    ("approximation, never a guarantee", "An approximation for many people; the true value may be larger or smaller."),
    ("estimate (interval)", "Measured on random runs: the interval contains the truth with the stated confidence."),
)
UNITS_EXPLAINED: dict[str, str] = {
    "nats": "Nats are the unit of epsilon: with epsilon nats, no output is more than e^epsilon times as likely "
    "for one value of a person as for another, plus delta where a delta is stated.",
    "bits": "Bits measure information: one bit is the answer to one fair yes-or-no question.",
}

_COUNTED_OUT = 6
# Control characters and surrogates cannot be shown. Bidirectional overrides, which are format characters, can disguise
# a label. Other format characters (joiners inside words and emoji) are part of the text.
_HIDDEN = {"Cc", "Cs"}
_REORDERING = set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True, kw_only=True)
class BoundText:
    """A bound as two texts: the figure with its unit, and its kind, for example "certified bracket"."""

    value: str
    kind: str


def plain(text: str) -> str:
    r"""Return `text` on one line, without control characters that affect a page or a terminal.

    >>> plain("two\n words \x1b[31m")
    'two words �[31m'
    """
    return "".join(_shown(character) for character in " ".join(text.split()))


def block(text: str) -> str:
    r"""Return `text` without control characters, like `plain`, but with line breaks and tabs.

    >>> block("a = 1\r\n\tb = 2\x07")
    'a = 1\n\tb = 2�'
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(character if character in "\n\t" else _shown(character) for character in lines)


def columns(text: str) -> int:
    """Return the width of `text` in columns of a fixed-width font.

    >>> columns("two"), columns("二")
    (3, 2)
    """
    marks = sum(unicodedata.combining(character) > 0 for character in text)
    return len(text) + sum(unicodedata.east_asian_width(character) in "WF" for character in text) - marks


def short(text: str, most: int = 40) -> str:
    """Return `text` like `plain`, cut to a width of at most `most` columns.

    >>> short("a label that goes on", 10)
    'a label t…'
    """
    shown = plain(text)
    if columns(shown) <= most:
        return shown
    while columns(shown) >= most:
        shown = shown[:-1]
    return f"{shown.rstrip()}…"


def figure(bound: Bound) -> BoundText:
    """Return the two parts of `str(bound)`: the value with its unit, and the kind.

    >>> figure(Bound(lower=0.25, upper=0.26, kind="bracket", unit="nats"))
    BoundText(value='0.2500 to 0.2600 nats', kind='certified bracket')
    """
    value, _, kind = str(bound).rpartition(" (")
    return BoundText(value=value, kind=kind.removesuffix(")"))


def refusal(row: Unanswered) -> str:
    """Return a sentence with the reason why a question has no answer.

    >>> refusal(Unanswered(question="q", topic="t", reason="There is no figure. Use another."))
    'Not answered for this mechanism, because there is no figure. Use another.'
    """
    first, space, rest = plain(row.reason).partition(" ")
    start = first if first[1:] != first[1:].lower() else first.lower()
    return f"Not answered for this mechanism, because {start}{space}{rest}"


def attained(witness: Witness, labels: tuple[str, ...]) -> str:
    """Describe in words the datasets that attain a lower bound; list at most six of their values.

    >>> attained(Witness(family="worst", others=(8, 1), target=(0, 1)), ("no", "yes"))
    'worst (others: 8 at "no", 1 at "yes"; target "no" against "yes")'
    """
    largest = max(len(witness.others) - 1, *witness.target)
    if len(labels) <= largest:  # the witness's values are not the people's answers, so they have no labels
        labels = tuple(str(value) for value in range(largest + 1))
    names = [f'"{short(label)}"' for label in labels[: largest + 1]]
    held = [f"{count:,} at {name}" for count, name in zip(witness.others, names, strict=False) if count]
    more = f", and {len(held) - _COUNTED_OUT} more values" if len(held) > _COUNTED_OUT else ""
    others = f"{', '.join(held[:_COUNTED_OUT]) or 'none'}{more}"
    first, second = (names[value] for value in witness.target)
    return f"{plain(witness.family)} (others: {others}; target {first} against {second})"


def decimals(errors: Iterable[float]) -> int:
    """Return the number of decimals, 3 to 8, that shows the smallest positive error with three significant digits.

    >>> decimals([0.00533, 0.021])
    5
    """
    sizes = [error for error in errors if 0 < error < math.inf]
    return min(8, max(3, 2 - math.floor(math.log10(min(sizes))))) if sizes else 4


def fixed(value: float, places: int) -> str:
    """Return `value` with `places` decimals; never "-0.00".

    >>> fixed(-0.00001, 3), fixed(1.23456, 3)
    ('0.000', '1.235')
    """
    if math.isinf(value):
        return "infinity" if value > 0 else "-infinity"
    text = f"{value:.{places}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def plural(count: int, noun: str, many: str = "") -> str:
    """Return a count with its noun in the singular or plural: "1 run", "1,000 runs".

    >>> plural(1, "person", "people"), plural(1000, "run")
    ('1 person', '1,000 runs')
    """
    return f"{count:,} {noun if count == 1 else many or noun + 's'}"


def asked(population: Population) -> str:
    """Return a sentence with the numbers of people and values, and the source of the data.

    >>> asked(Population(n=9, labels=("no", "yes"), source="people.csv", dropped=1))
    'Population: 9 people, 2 values; people.csv. Left out: 1 record without an answer.'
    """
    lacking = f"without an {'answer' if population.label_of in ('value', 'column') else 'identifier'}"
    excess = (
        f"in excess of {plural(population.reports_per_person, 'record')} per person (population.reports_per_person)"
    )
    counts = (population.dropped, lacking), (population.beyond, excess)
    out = " and ".join(f"{plural(count, 'record')} {why}" for count, why in counts if count)
    values = plural(len(population.labels), population.label_of)
    rows = population.counts is not None or (population.label_of == "column" and population.source != "no data")
    unit = " Each row counts as one person." if rows and population.people is None else ""
    left_out = f" Left out: {out}." if out else ""
    return f"Population: {_people(population)}, {values}; {plain(population.source)}.{left_out}{unit}"


def _people(population: Population) -> str:
    if population.people is None and population.reports_per_person == 1:
        return plural(population.n, "person", "people")
    of = "" if population.people is None else f" of {plural(population.people, 'person', 'people')}"
    return f"{plural(population.n, 'report')}{of}, at most {population.reports_per_person:,} of each person"


def _shown(character: str) -> str:
    hidden = character in _REORDERING or unicodedata.category(character) in _HIDDEN
    return _REPLACEMENT if hidden else character
