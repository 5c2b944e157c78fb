"""`hushuffle attack`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from hushuffle.cli.console import Exit, UsageError, progress
from hushuffle.cli.delivery import deliver, refuse_file
from hushuffle.errors import InvalidInputError

_Flag = Parameter(negative=(), show_default=False)
_List = Parameter(negative=(), consume_multiple=False)

attack = App(name="attack", help="Run an attack on data and compare its success with the certified bound.")
"""The verb with its attacks as commands."""


@attack.command
def linkage(
    traces: Path,
    /,
    *,
    kind: Literal["table", "checkins", "ratings"] = "table",
    user: str = "user",
    item: str = "item",
    time: str | None = None,
    stars: float = 4.0,
    epsilon: Annotated[list[str], _List] = ["inf"],  # noqa: B006 - never changed
    mechanism: Annotated[
        list[Literal["randomized-response", "local-hashing", "subset-selection"]] | None, _List
    ] = None,
    buckets: int | None = None,
    attacker: Literal["partial", "maximum"] = "partial",
    split: Literal["half", "none"] = "half",
    known: Annotated[list[int] | None, _List] = None,
    events: Annotated[list[str], _List] = ["1"],  # noqa: B006 - never changed
    score: Literal["bayes", "plain", "cosine", "tf-idf"] = "bayes",
    repetitions: int = 1,
    at_least: int = 10,
    seed: int | None = None,
    out: Path | None = None,
    json: Annotated[bool, _Flag] = False,
) -> Exit:
    """Say how often an attacker who knows people's past events finds out whose reports are whose.

    Every person sends some events, each randomized. The attacker has a Markov
    model of everybody's past events and names the person whose model fits best.
    Options marked * may be repeated: every combination is tried.
    Writes study.html and study.json into one folder, both or neither.

    Args:
        traces: a table of events (CSV or Parquet), or published check-ins or ratings.
        kind: "table", "checkins" (Foursquare) or "ratings" (MovieLens).
        user: of a table: the column of users.
        item: of a table: the column of items (places, pages, products).
        time: of a table: the column of times; without it the order of the rows counts.
        stars: of ratings: those with fewer stars are left out.
        epsilon: * epsilon of one report, or inf for no noise.
        mechanism: * "randomized-response", "local-hashing" or "subset-selection"; the first two by default.
        buckets: of local hashing; those with the least variance by default.
        attacker: "partial" knows other events of the person, "maximum" those that are reported.
        split: "half": the attacker knows the former half, the latter is reported; "none": one trace for both.
        known: * how many events of each person the attacker knows; all there are by default.
        events: * how many events each person reports, or all.
        score: "bayes" uses the law of the noise, "plain" believes the reports; "cosine" and "tf-idf" compare visits.
        repetitions: times that everything is randomized anew.
        at_least: people with fewer events are left out.
        seed: of the coins; cryptographic coins by default.
        out: the folder to write into; hushuffle-out/ and the name of the traces by default.
        json: print study.json instead of the summary, and nothing else, to standard output.
    """
    # Imported here, so that `hushuffle --help` does not wait for numerics, tables and templates.
    from hushuffle.attacks.attack import link, load_traces  # noqa: PLC0415

    folder = Path("hushuffle-out") / f"linkage-{traces.name.partition('.')[0]}" if out is None else out
    refuse_file(folder)
    epsilons, sent = [_epsilon(text) for text in epsilon], [_events(text) for text in events]
    with progress(enabled=not json and sys.stderr.isatty()) as tell:
        people = load_traces(traces, kind=kind, user=user, item=item, time=time, stars=stars)
        try:
            study = link(
                people,
                source=traces.name,
                epsilons=epsilons,
                mechanisms=mechanism or ["randomized-response", "local-hashing"],
                buckets=buckets,
                knowledge=attacker,
                split=split,
                known=known or [None],
                events=sent,
                score=score,
                repetitions=repetitions,
                at_least=at_least,
                seed=seed,
                progress=tell,
            )
        except InvalidInputError as error:  # the options are the only input of `link` that can be wrong
            raise UsageError(str(error)) from None
    deliver(study, folder, json=json)
    return Exit.DONE


def _epsilon(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        message = f"--epsilon must be a number or inf, got {text}."
        raise UsageError(message) from error


def _events(text: str) -> int | Literal["all"]:
    if text == "all":
        return "all"
    if not text.isdecimal():
        message = f"--events must be a number or all, got {text}."
        raise UsageError(message)
    return int(text)
