"""A plan drawn as lines of text, as a layout of boxes, and as SVG."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Final

from hushuffle.plans.cluster import Cluster
from hushuffle.plans.plan import Plan

WIDTH: Final = 220
HEIGHT: Final = 58
GAP: Final = 70
MARGIN: Final = 12
_LONGEST: Final = 34


@dataclass(frozen=True, kw_only=True)
class Box:
    """One cluster or set of data: its upper left corner, its lines of text, and its `kind`: data, hidden or fixed."""

    name: str
    x: int
    y: int
    lines: tuple[str, ...]
    kind: str


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A drawing: boxes of size (`WIDTH`, `HEIGHT`), and arrows between boxes: (name of start, name of end, dashed).

    Dashed arrows carry public values.
    """

    width: int
    height: int
    boxes: tuple[Box, ...]
    arrows: tuple[tuple[str, str, bool], ...]


def layout(plan: Plan) -> Drawing:
    """Return the layout of a plan: data on the left, then the rounds from left to right.

    >>> import hushuffle as hs
    >>> drawing = hs.plans.layout(hs.plans.k_means(people=200, centroids=2, iterations=1, variant="hidden", sigma=0.2))
    >>> [(box.name, box.x) for box in drawing.boxes]
    [('people', 12), ('assign 1', 302), ('update 1', 592), ('result', 882)]
    """
    columns: list[list[tuple[str, tuple[str, ...], str]]] = [
        [(data.name, (data.name, f"{data.items:,} items"), "data") for data in plan.data]
    ]
    columns += [[_labels(cluster) for cluster in layer] for layer in plan.layers]
    tallest = max(map(len, columns))
    boxes = []
    for number, column in enumerate(columns):
        top = MARGIN + (tallest - len(column)) * (HEIGHT + GAP // 2) // 2
        for row, (name, lines, kind) in enumerate(column):
            x, y = MARGIN + number * (WIDTH + GAP), top + row * (HEIGHT + GAP // 2)
            boxes.append(Box(name=name, x=x, y=y, lines=lines, kind=kind))
    reads = [(data, cluster.name, False) for cluster in plan.clusters for data in cluster.reads]
    feeds = [(edge.start, edge.end, edge.carries != "hidden") for edge in plan.edges]
    return Drawing(
        width=2 * MARGIN + len(columns) * WIDTH + (len(columns) - 1) * GAP,
        height=2 * MARGIN + tallest * (HEIGHT + GAP // 2) - GAP // 2,
        boxes=tuple(boxes),
        arrows=tuple(reads + feeds),
    )


def _labels(cluster: Cluster) -> tuple[str, tuple[str, ...], str]:
    size = f"{cluster.sources:,} → {cluster.targets:,}"
    if cluster.sampling is None:
        return cluster.name, (cluster.name, size, "fixed messages"), "fixed"
    hidden = f"sigma {cluster.sampling.sigma:g}"
    if cluster.sampling.flood:
        hidden += f", flooding {cluster.sampling.flood}"
    if cluster.scrambler is not None:
        chain = "" if cluster.cascade == 1 else f"{cluster.cascade} x "
        hidden += f", {chain}{cluster.scramblers:,} scramblers, d = {cluster.scrambler.dummies:,}"
    return cluster.name, (cluster.name, size, hidden), "hidden"


def svg(plan: Plan) -> str:
    """Return the plan as an SVG document.

    >>> import hushuffle as hs
    >>> hs.plans.svg(hs.plans.k_means(people=200, centroids=2, iterations=1, variant="hidden",
    ...     sigma=0.2)).count("<rect")
    4
    """
    drawing = layout(plan)
    places = {box.name: box for box in drawing.boxes}
    fills = {"data": "#eef3e2", "hidden": "#e3ecf7", "fixed": "#f2f2f2"}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{drawing.width}" height="{drawing.height}" '
        f'viewBox="0 0 {drawing.width} {drawing.height}" role="img" font-family="sans-serif" font-size="12">',
        f"<title>{escape(plan.name)}</title>",
        '<defs><marker id="end" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#555"/></marker></defs>',
    ]
    for start, end, dashed in drawing.arrows:
        source, target = places[start], places[end]
        x, y, to_x, to_y = source.x + WIDTH, source.y + HEIGHT // 2, target.x, target.y + HEIGHT // 2
        bend = max(GAP, (to_x - x) // 2)
        dashes = ' stroke-dasharray="5 4"' if dashed else ""
        parts.append(
            f'<path d="M{x} {y}C{x + bend} {y} {to_x - bend} {to_y} {to_x} {to_y}" fill="none" stroke="#555"{dashes} '
            'marker-end="url(#end)"/>'
        )
    for box in drawing.boxes:
        parts.append(
            f'<rect x="{box.x}" y="{box.y}" width="{WIDTH}" height="{HEIGHT}" rx="5" fill="{fills[box.kind]}" '
            'stroke="#888"/>'
        )
        for line, text in enumerate(box.lines):
            weight = ' font-weight="bold"' if line == 0 else ""
            shown = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
            parts.append(f'<text x="{box.x + 8}" y="{box.y + 18 + 16 * line}"{weight}>{escape(shown)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def describe(plan: Plan) -> str:
    """Return a description of the plan in lines for a terminal.

    >>> import hushuffle as hs
    >>> print(hs.plans.describe(hs.plans.k_means(people=200, centroids=2, iterations=1, variant="hidden", sigma=0.2)))
    k-means, 2 centroids, 1 iteration, hidden
      data people: 200 items
    1 assign 1 <- people
        200 sources: every message goes to its own one of 2 targets, with probability 0.2 to a random one (...)
    2 update 1 <- assign 1
        2 sources, whose messages do not depend on the data
    3 result <- update 1
        1 source, whose messages do not depend on the data
    """
    lines = [plan.name, *(f"  data {data.name}: {data.items:,} items" for data in plan.data)]
    for number, layer in enumerate(plan.layers, start=1):
        for cluster in layer:
            feeds = [
                edge.start + ("" if edge.carries == "hidden" else f" ({edge.carries})")
                for edge in plan.edges
                if edge.end == cluster.name
            ]
            sources = ", ".join((*cluster.reads, *feeds))
            lines += [f"{number} {cluster.name}" + (f" <- {sources}" if sources else ""), f"    {cluster.describe()}"]
    for release in plan.releases:
        cost = f"epsilon {release.epsilon:.4g}" if release.rho is None else f"rho {release.rho:.4g}"
        lines.append(f"  released with noise: {release.name}, after {release.start} ({cost} for one item)")
    lines += [f"  assumed: {sentence}" for sentence in plan.assumptions]
    lines += [f"  no guarantee: {sentence}" for sentence in plan.refusals()]
    return "\n".join(lines)
