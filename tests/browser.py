"""Pages opened in headless Chromium, in frames of several widths, and measured there."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# Frames of given widths hold the pages; what reaches beyond its frame is counted and named.
PROBE = """<!DOCTYPE html><title>waiting</title>{frames}<script>
addEventListener("load", () => {{
  const found = [...document.querySelectorAll("iframe")].map(frame => {{
    const page = frame.contentDocument, width = frame.clientWidth;
    const wide = [...page.body.querySelectorAll("*")].filter(
      one => !one.closest(".scroll[tabindex]") && one.getBoundingClientRect().right > width + 1);
    const sizes = [...page.querySelectorAll("svg.chart text")].map(
      one => parseFloat(getComputedStyle(one).fontSize) * Math.hypot(one.getScreenCTM().a, one.getScreenCTM().b));
    const overlaps = [...page.querySelectorAll("svg.chart")].flatMap(chart => {{
      const texts = [...chart.querySelectorAll("text")].filter(one => one.textContent.trim());
      const boxes = texts.map(one => one.getBoundingClientRect());
      const found = [];
      for (let a = 0; a < boxes.length; a++) for (let b = a + 1; b < boxes.length; b++) {{
        const wide = Math.min(boxes[a].right, boxes[b].right) - Math.max(boxes[a].left, boxes[b].left);
        const high = Math.min(boxes[a].bottom, boxes[b].bottom) - Math.max(boxes[a].top, boxes[b].top);
        if (wide > 1 && high > 3) found.push(texts[a].textContent + " | " + texts[b].textContent);
      }}
      return found;
    }});
    return {{
      overlaps, width, page: page.documentElement.scrollWidth, wide: wide.map(one => one.outerHTML.slice(0, 80)),
      smallest: Math.min(...sizes),
    }};
  }});
  document.title = JSON.stringify(found);
}});
</script>"""


def measured(pages: Sequence[str], widths: Sequence[int], folder: Path) -> list[dict[str, Any]]:
    """Return what is found in each page at each width: too wide elements, the smallest text, overlapping labels."""
    frames = "".join(
        f'<iframe style="border:0;width:{width}px;height:800px" srcdoc="{html.escape(page)}"></iframe>'
        for page in pages
        for width in widths
    )
    probe = folder / "probe.html"
    probe.write_text(PROBE.format(frames=frames))
    command = [
        str(CHROMIUM),
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        f"--user-data-dir={folder / 'profile'}",
        "--dump-dom",
        probe.as_uri(),
    ]
    dumped = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    title = re.search(r"<title>(.*?)</title>", dumped, re.DOTALL)
    assert title is not None
    found: list[dict[str, Any]] = json.loads(html.unescape(title[1]))
    assert len(found) == len(widths) * len(pages)
    return found
