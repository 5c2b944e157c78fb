"""Draw the pictures of README and documentation: python docs/picture.py."""

from __future__ import annotations

from pathlib import Path

import altair as alt
import vl_convert

import hushuffle as hs
from hushuffle.assessment.charts import privacy_charts
from hushuffle.assessment.findings import Questions

HERE = Path(__file__).parent
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00"]
DELTA = 1e-6


def axis(rows: list[dict[str, object]], name: str, *, log: bool) -> alt.Axis:
    """Return an axis whose labels do not lie on each other: 1, 2 and 5 of each decade; of many only 1."""
    ends = [float(str(row[name])) for row in rows]
    leads = (1,) if log and max(ends) >= 1000 * min(ends) else (1, 2, 5)
    steps = [lead * 10.0**power for power in range(-9, 10) for lead in leads]
    values = [step for step in steps if min(ends) <= step <= max(ends)]
    return alt.Axis(values=values if log else alt.Undefined, labelFlush=False, labelPadding=5)


def save(
    name: str, title: str, x_title: str, y_title: str, rows: list[dict[str, object]], *, x_log: bool, y_log: bool = True
) -> None:
    """Write one chart of lines: each row has x, y and label."""
    order = list(dict.fromkeys(str(row["label"]) for row in rows))
    scale = alt.Scale(domain=order, range=COLOURS[: len(order)])
    picture = (
        alt.Chart(alt.Data(values=rows), width=560, height=300)
        .mark_line(point=True, strokeWidth=2.5)
        .encode(
            x=alt.X(
                "x:Q",
                title=x_title,
                axis=axis(rows, "x", log=x_log),
                scale=alt.Scale(type="log" if x_log else "linear", nice=False),
            ),
            y=alt.Y(
                "y:Q",
                title=y_title,
                axis=axis(rows, "y", log=y_log),
                scale=alt.Scale(type="log" if y_log else "linear", nice=False, zero=False),
            ),
            color=alt.Color("label:N", title=None, scale=scale),
            strokeDash=alt.StrokeDash("label:N", legend=None, sort=order),
        )
        .properties(title=title)
        .configure(background="white", font="sans-serif")
        .configure_legend(orient="top", labelFontSize=13, labelLimit=400, columns=3)
        .configure_axis(labelFontSize=12, titleFontSize=13)
    )
    (HERE / name).write_text(vl_convert.vegalite_to_svg(picture.to_dict()), encoding="utf-8")


def against_noise() -> None:
    """Draw what the shuffler adds."""
    survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=2.0), shuffler=hs.UniformShuffle(), n=6366)
    charts = privacy_charts(Questions(), survey, delta=DELTA)
    chart = next(chart for chart in charts if chart.key == "privacy-against-noise")
    rows: list[dict[str, object]] = [
        {"x": x, "y": y, "label": series.label}
        for series in chart.series
        for x, y in zip(series.x, series.upper, strict=True)
    ]
    title = "6,366 people asked one question: what the shuffler adds (delta = 1e-6)"
    save(
        "privacy-against-noise.svg",
        title,
        "epsilon of one report, seen with its sender",
        "epsilon (smaller is more private)",
        rows,
        x_log=False,
    )


def published_bounds() -> None:
    """Draw what the exact sum buys."""
    published = hs.dp.published
    bounds = {
        "certified bracket (upper end)": lambda protocol: hs.dp.epsilon(protocol, delta=DELTA).upper,
        "Bennett": lambda protocol: published.bennett_epsilon(protocol, delta=DELTA).upper,
        "Hoeffding": lambda protocol: published.hoeffding_epsilon(protocol, delta=DELTA).upper,
        "clones": lambda protocol: published.clones_epsilon(protocol, delta=DELTA).upper,
        "any randomizer": lambda protocol: published.any_randomizer_epsilon(protocol, delta=DELTA).upper,
    }
    rows: list[dict[str, object]] = []
    for label, bound in bounds.items():
        for n in (1000, 3000, 10_000, 30_000, 100_000, 1_000_000):
            survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=5, epsilon=2.0), shuffler=hs.UniformShuffle(), n=n)
            rows.append({"x": n, "y": bound(survey), "label": label})
    title = "What the exact sum buys: 5 answers, local epsilon 2, delta = 1e-6"
    save("published-bounds.svg", title, "people", "epsilon, upper bound", rows, x_log=True)


def guessing() -> None:
    """Draw shuffling alone against noise and shuffling, for several truth probabilities (two answers)."""
    rows: list[dict[str, object]] = []
    for truth, label in ((1.0, "shuffle only"), (0.9, "p = 0.9"), (0.75, "p = 0.75"), (0.6, "p = 0.6")):
        randomizer = hs.RandomizedResponse.from_truth_probability(k=2, p=truth)
        for n in (1, 2, 3, 5, 7, 11, 17, 31, 51, 101, 201, 501, 1001):
            shuffled = hs.Protocol(randomizer=randomizer, shuffler=hs.UniformShuffle(), n=n)
            rows.append({"x": n, "y": hs.qif.vulnerability(shuffled).upper, "label": label})
    title = "Uninformed adversary: shuffling alone, and noise with shuffling (two answers)"
    save("guessing-against-people.svg", title, "people", "guesses right", rows, x_log=True, y_log=False)


if __name__ == "__main__":
    against_noise()
    published_bounds()
    guessing()
