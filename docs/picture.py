"""Draw the README's picture: python docs/picture.py."""

from __future__ import annotations

from pathlib import Path

import altair as alt
import vl_convert

import hushuffle as hs
from hushuffle.workflows.curves import privacy_charts

survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=2.0), shuffler=hs.UniformShuffle(), n=6366)
chart = next(chart for chart in privacy_charts(survey, delta=1e-6) if chart.key == "privacy-against-noise")
rows = [
    {"noise": x, "epsilon": y, "report": series.label}
    for series in chart.series
    for x, y in zip(series.x, series.upper, strict=True)
]
picture = (
    alt.Chart(alt.Data(values=rows), width=560, height=260)
    .mark_line(point=True, strokeWidth=2.5)
    .encode(
        x=alt.X("noise:Q", title="epsilon of one report, seen with its sender"),
        y=alt.Y("epsilon:Q", title="epsilon (smaller is more private)", scale=alt.Scale(type="log")),
        color=alt.Color("report:N", title=None, scale=alt.Scale(range=["#0072B2", "#D55E00"])),
        strokeDash=alt.StrokeDash("report:N", title=None),
    )
    .properties(title="6,366 people asked one question: what the shuffler adds (delta = 1e-6)")
    .configure(background="white", font="sans-serif")
    .configure_legend(orient="top", labelFontSize=13, labelLimit=400)
    .configure_axis(labelFontSize=12, titleFontSize=13)
)
target = Path(__file__).with_name("privacy-against-noise.svg")
target.write_text(vl_convert.vegalite_to_svg(picture.to_dict()), encoding="utf-8")
