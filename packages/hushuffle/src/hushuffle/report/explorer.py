"""The page of an explorer: one file of HTML with sliders that loads nothing and sends nothing."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import astuple
from operator import attrgetter
from typing import Any, Final

from hushuffle.model import Unanswered
from hushuffle.model.explorer import Explorer
from hushuffle.report.formatting import KINDS_EXPLAINED, UNITS_EXPLAINED, plain, refusal
from hushuffle.report.page import environment

_KINDS: Final = ("exact", "bracket", "upper", "lower")
_SHOWN: Final = {"n": "{:,.0f}", "k": "{:,.0f}", "epsilon": "{:.4g}", "delta": "{:g}", "dummies": "{:,.12g}"}


def explorer_html(explorer: Explorer) -> str:
    """Return the HTML of the page with sliders: the script is part of the page, and the text is deterministic."""
    templates = environment()
    assert templates.loader is not None
    sources = (templates.loader.get_source(templates, f"explorer_{name}.js") for name in ("figures", "page"))
    script = "".join(source for source, _, _ in sources)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    rows = []
    for adversary in explorer.adversaries:
        reason = adversary.reason
        if reason:
            reason = refusal(Unanswered(question=adversary.key, topic=adversary.name, reason=reason))
        rows.append((adversary.key, adversary.name, reason))
        if adversary.key == "central":
            rows.append(("colluders", f"{adversary.name}, with colluders", reason))
            rows.append(("local", "A compromised shuffler", ""))
    return templates.get_template("explorer.html").render(
        explorer=explorer,
        axes=[(axis, [_label(axis.key, stop) for stop in axis.stops]) for axis in explorer.axes],
        rows=rows,
        ordered=all(axis.ordered for axis in explorer.axes if axis.key == "epsilon"),
        several=[axis.ordered for axis in explorer.axes if axis.key == "dummies"] if explorer.per_person else [],
        data=_data(explorer),
        script=script,
        digest=digest,
        kinds=[row for row in KINDS_EXPLAINED if row[0].partition(" ")[0] in ("exact", "certified", "upper", "lower")],
        units=[UNITS_EXPLAINED["nats"]],
    )


def _label(key: str, stop: float) -> str:
    if math.isinf(stop):
        return "none"
    return f"{stop:g} %" if key == "colluders" else _SHOWN[key].format(stop)


_settings: Final = attrgetter("k", "people", "dummies", "epsilon", "delta")


def _finite(value: Any) -> Any:
    """Return `value` with infinite numbers replaced by words, since JSON has no infinite numbers."""
    if isinstance(value, float):
        return "Infinity" if math.isinf(value) else value
    if isinstance(value, Mapping):
        return {key: _finite(one) for key, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, list | tuple) else value


def _data(explorer: Explorer) -> str:
    """Return the data for the page's script as JSON, escaped so that it cannot end the script element."""
    axes = {
        axis.key: {
            "stops": list(axis.stops),
            "labels": [_label(axis.key, stop) for stop in axis.stops],
            "written": [repr(stop) for stop in axis.stops],
            "start": axis.start,
            "ordered": axis.ordered,
        }
        for axis in explorer.axes
    }
    adversaries = {
        adversary.key: {
            "sentence": plain(adversary.sentence),
            "colluding": adversary.colluding,
            "scaled": adversary.scaled,
            "derived": adversary.derived,
            "points": [
                [*_settings(point), point.bound.lower, point.bound.upper, _KINDS.index(point.bound.kind)]
                for point in adversary.points
            ],
        }
        for adversary in explorer.adversaries
    }
    devices = [astuple(device) for device in explorer.devices]
    text = json.dumps(
        _finite(
            {
                "axes": axes,
                "adversaries": adversaries,
                "devices": devices,
                "dummiesCount": explorer.dummies_count,
                "reports": explorer.reports,
                "trusted": explorer.trusted,
                "perPerson": explorer.per_person,
                "toml": explorer.toml,
            }
        ),
        allow_nan=False,
        separators=(",", ":"),
    )
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
