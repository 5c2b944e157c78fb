from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from hushuffle import report
from report.assessments import assessment, with_first_page
from report.studies import study

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
CASES = {
    "two values": assessment(2),
    "many values": assessment(200),
    "first page": with_first_page(assessment(2)),
    "long labels": assessment(4, names=("x" * 200, "日本語" * 50, "a label of many words " * 9, "<b>")),
}
WIDTHS = (320, 390, 540, 768, 850, 1280)
# Frames of given widths hold the pages; what reaches beyond its frame is counted and named.
PROBE = """<!DOCTYPE html><title>waiting</title>{frames}<script>
addEventListener("load", () => {{
  const found = [...document.querySelectorAll("iframe")].map(frame => {{
    const page = frame.contentDocument, width = frame.clientWidth;
    const wide = [...page.body.querySelectorAll("*")].filter(
      one => !one.closest(".scroll[tabindex]") && one.getBoundingClientRect().right > width + 1);
    const sizes = [...page.querySelectorAll("svg.chart text")].map(
      one => parseFloat(getComputedStyle(one).fontSize) * Math.hypot(one.getScreenCTM().a, one.getScreenCTM().b));
    return {{
      width, page: page.documentElement.scrollWidth, wide: wide.map(one => one.outerHTML.slice(0, 80)),
      smallest: Math.min(...sizes),
    }};
  }});
  document.title = JSON.stringify(found);
}});
</script>"""


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
def test_nothing_is_wider_than_the_screen(tmp_path: Path) -> None:
    pages = [html.escape(report.html(made)) for made in CASES.values()]
    pages.append(html.escape(report.html(study(points=500))))
    frames = "".join(
        f'<iframe style="border:0;width:{width}px;height:800px" srcdoc="{page}"></iframe>'
        for page in pages
        for width in WIDTHS
    )
    probe = tmp_path / "probe.html"
    probe.write_text(PROBE.format(frames=frames))
    command = [
        str(CHROMIUM),
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        f"--user-data-dir={tmp_path / 'profile'}",
        "--dump-dom",
        probe.as_uri(),
    ]
    dumped = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    title = re.search(r"<title>(.*?)</title>", dumped, re.DOTALL)
    assert title is not None
    found = json.loads(html.unescape(title[1]))
    assert len(found) == len(WIDTHS) * len(pages)
    for one in found:
        assert one["page"] <= one["width"], one
        assert one["wide"] == [], one
        assert one["smallest"] >= (10 if one["width"] >= 390 else 8), one
