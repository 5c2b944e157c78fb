"""The questions that a reach study answers, and their answers from a release of views of columns."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Final, Literal

from hushuffle.estimation.column_views import answers_question, people
from hushuffle.estimation.contacts import Frequencies, frequencies
from hushuffle.estimation.reach import Question, Reach
from hushuffle.mechanisms.column_views import ColumnCounts, ColumnViews

_MOST_FOR_ALL: Final = 4
"""Up to this number of publishers, the overlap of every set of publishers is estimated."""


@dataclass(frozen=True, kw_only=True)
class ReachQuestion:
    """A question that the study answers, for example the reach of some publishers, and the label of its row.

    "contacts" asks for the people with this number of `contacts`.
    """

    question: Question | Literal["contacts"]
    publishers: tuple[int, ...]
    label: str
    contacts: int = 0


def questions(names: tuple[str, ...]) -> tuple[ReachQuestion, ...]:
    """Total reach, each publisher's reach, its people that no other reaches, and overlaps.

    >>> [asked.label for asked in questions(("tv", "web"))]
    ['tv or web', 'tv', 'web', 'tv alone', 'web alone', 'tv and web']
    """
    everyone, k = tuple(range(len(names))), len(names)
    single = [ReachQuestion(question="reach", publishers=(each,), label=names[each]) for each in everyone]
    if k == 1:
        return tuple(single)
    union = " or ".join(names) if k <= 2 else f"any of the {k}"
    alone = [ReachQuestion(question="exclusive", publishers=(each,), label=f"{names[each]} alone") for each in everyone]
    sizes = range(2, (k if k <= _MOST_FOR_ALL else 2) + 1)
    several = [
        ReachQuestion(
            question="overlap",
            publishers=chosen,
            label=f"{', '.join(names[each] for each in chosen[:-1])} and {names[chosen[-1]]}",
        )
        for size in sizes
        for chosen in combinations(everyone, size)
    ]
    return (ReachQuestion(question="reach", publishers=everyone, label=union), *single, *alone, *several)


def questions_of(names: tuple[str, ...], views: ColumnViews | None) -> tuple[ReachQuestion, ...]:
    """Return total reach, and the other questions that a release of views can answer (None: of flipped filters)."""
    every = questions(names)
    if views is None:
        return every
    listed = {(query.question, query.publishers): query for query in every}
    for view in views.views:
        for chosen in {"pairs": view.sets, "patterns": ()}.get(view.shows, (view.publishers,)):
            who = tuple(sorted(chosen))
            label = " or ".join(names[each] for each in who)
            listed.setdefault(("reach", who), ReachQuestion(question="reach", publishers=who, label=label))
    shown = [
        query
        for (question, who), query in list(listed.items())[1:]
        if question != "contacts" and answers_question(views, question, who)
    ]
    contacts = [
        ReachQuestion(
            question="contacts", publishers=view.publishers, label=_contacts_label(number, view.most), contacts=number
        )
        for view in views.views
        if view.most is not None
        for number in range(1, view.most + 1)
    ]
    return (every[0], *shown, *contacts)


def _contacts_label(number: int, most: int) -> str:
    words = "contact" if number == 1 else "contacts"
    return f"{number} or more contacts" if number == most else f"{number} {words}"


def people_with(seen: Frequencies, query: ReachQuestion) -> Reach:
    """Return the people with the number of contacts that `query` asks for."""
    place = query.contacts - 1
    return Reach(
        estimate=float(seen.estimates[place]),
        standard_error=float(seen.standard_errors[place]),
        question="contacts",
        publishers=query.publishers,
    )


def answered(counts: ColumnCounts, query: ReachQuestion) -> Reach:
    """Return the estimate of one question from a release of views.

    Raises:
        NumericalError: too few columns are empty, or the noise is too large.
    """
    if query.question == "contacts":
        return people_with(frequencies(counts), query)
    return people(counts, query.question, publishers=query.publishers)
