"""`hushuffle attack`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Group, Parameter

from hushuffle.cli.console import COMMON, Exit, Flag, deliver, from_options, misused, progress, refuse_file

_List = Parameter(negative=(), consume_multiple=False, show_default=False)
_Input = Parameter(group=Group("Input", sort_key=2))
_Noise = Parameter(group=Group("Randomizer", sort_key=3))
_Attacker = Parameter(group=Group("Attacker", sort_key=4))
_HELP = """Run an attack on data, and compare its success with the certified bound.

Examples (to create these files, first run: hushuffle examples ./examples):
  hushuffle attack linkage examples/visits.csv
  hushuffle attack linkage examples/visits.csv --epsilon inf --epsilon 1
"""

attack = App(name="attack", help=_HELP, group_parameters=COMMON)


@attack.command
def linkage(
    traces: Path,
    /,
    *,
    kind: Annotated[Literal["table", "checkins", "ratings"], _Input] = "table",
    user: Annotated[str, _Input] = "user",
    item: Annotated[str, _Input] = "item",
    time: Annotated[str | None, _Input] = None,
    stars: Annotated[float, _Input] = 4.0,
    epsilon: Annotated[list[str], _List] = ["inf"],  # noqa: B006 - never changed
    mechanism: Annotated[
        list[Literal["randomized-response", "local-hashing", "subset-selection"]] | None, _List, _Noise
    ] = None,
    buckets: Annotated[int | None, _Noise] = None,
    attacker: Annotated[Literal["partial", "maximum"], _Attacker] = "partial",
    split: Annotated[Literal["half", "none"], _Attacker] = "half",
    known: Annotated[list[int] | None, _List, _Attacker] = None,
    events: Annotated[list[str], _List] = ["1"],  # noqa: B006 - never changed
    score: Annotated[Literal["bayes", "plain", "cosine", "tf-idf"], _Attacker] = "bayes",
    repetitions: Annotated[int, _Noise] = 1,
    at_least: Annotated[int, _Input] = 10,
    seed: int | None = None,
    out: Path | None = None,
    json: Flag = False,
) -> Exit:
    """Link randomized events to people, and compare the success rate with its bound.

    Examples (to create these files, first run: hushuffle examples ./examples):
      hushuffle attack linkage examples/visits.csv
      hushuffle attack linkage examples/visits.csv --epsilon inf --epsilon 1

    Each person reports randomized events. The attacker has a Markov model of each
    person's past events, and names the person whose model fits best. If options
    are repeated, every combination of their values is tried. Writes study.html and
    study.json.

    Args:
        traces: a table of events (CSV or Parquet), or published check-ins or ratings.
        kind: "table", "checkins" (Foursquare) or "ratings" (MovieLens).
        user: column of users in the table.
        item: column of items (places, pages, products) in the table.
        time: column of times in the table (default: the rows are in order of time).
        stars: minimum number of stars; ratings with fewer stars are left out.
        epsilon: local epsilon of one report in nats; inf means no noise; may be repeated (default: inf).
        mechanism: randomizer; may be repeated (default: both randomized-response and local-hashing).
        buckets: number of buckets of local hashing (default: the number with the least variance).
        attacker: "maximum" knows the true events behind the reports, "partial" only other events of the person.
        split: "half": the attacker knows events of the first half of a trace, and the reports are from the second half;
            "none": both are from the whole trace.
        known: number of past events per person that the attacker knows; may be repeated (default: all).
        events: number of reported events per person, or all; may be repeated (default: 1).
        score: "bayes" uses the distribution of the noise, "plain" ignores it; "cosine" and "tf-idf" compare the items
            of a report and of a person's past.
        repetitions: number of times that all reports are drawn; the results are averaged. With more than 2,000 people,
            each time 2,000 of them are drawn at random, and their reports are compared with all people.
        at_least: minimum number of events of a person; people with fewer are left out.
        seed: seed of the randomness (default: cryptographically secure randomness).
        out: folder to write into (default: hushuffle-out/linkage-NAME, where NAME is that of the table).
        json: print only study.json, no summary, to standard output.
    """
    # Imported here, so that `hushuffle --help` does not wait for numerics, tables and templates.
    from hushuffle.attacks.attack import link, load_traces  # noqa: PLC0415

    folder = Path("hushuffle-out") / f"linkage-{traces.name.partition('.')[0]}" if out is None else out
    refuse_file(folder)
    epsilons, sent = [_epsilon(text) for text in epsilon], [_events(text) for text in events]
    with progress(enabled=not json and sys.stderr.isatty()) as tell:
        people = load_traces(traces, kind=kind, user=user, item=item, time=time, stars=stars)
        with from_options():  # the only input of `link` that can be wrong
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
    deliver(study, folder, json=json)
    return Exit.DONE


def _epsilon(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        misused(f"--epsilon must be a number or inf, got {text}.")


def _events(text: str) -> int | Literal["all"]:
    if text == "all":
        return "all"
    if not text.isdecimal():
        misused(f"--events must be a number or all, got {text}.")
    return int(text)
