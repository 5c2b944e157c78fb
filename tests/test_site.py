"""The pages as a reader gets them: built, and looked at as HTML."""

from __future__ import annotations

import html
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag

import pytest

import hushuffle as hs

ROOT = Path(__file__).parents[1]
ROOMS = ("dp", "qif", "pie", "pse", "order", "bloom", "traffic", "plans")


class Page(HTMLParser):
    """What a page says, where it leads and what it loads."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.tags = Counter[str]()
        self._words: list[str] = []
        self.feed(file.read_text(encoding="utf-8"))
        self.text = "".join(self._words)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if "src" in given:
            self.loads.append(given["src"])
        if tag == "link" and given["rel"] not in {"canonical", "next", "prev"}:
            self.loads.append(given["href"])
        self.tags[tag] += 1

    def handle_endtag(self, tag: str) -> None:
        if tag in {"p", "td", "th", "li", "pre", "div", "h1", "h2", "h3", "h4"}:
            self._words.append("\n")

    def handle_data(self, data: str) -> None:
        self._words.append(data)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Page]:
    """Every page by its file; anything mkdocs warns of (a missing page or heading) fails here."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(
        command, cwd=ROOT, check=False, capture_output=True, text=True, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    )
    assert done.returncode == 0, done.stderr
    return {file: Page(file) for file in folder.rglob("*.html") if file.name != "404.html"}


def library(site: dict[Path, Page]) -> Page:
    return next(page for file, page in site.items() if file.parent.name == "library")


def test_every_link_leads_to_a_page_and_a_heading(site: dict[Path, Page]) -> None:
    for file, page in site.items():
        for link in page.links:
            target, anchor = urldefrag(unquote(link))
            if re.match(r"\w+:", target):
                continue
            there = (file.parent / target).resolve() if target else file
            there = there / "index.html" if there.is_dir() else there
            assert there.exists(), f"{file} links to {link}"
            assert not anchor or there not in site or anchor in site[there].ids, f"{file} links to {link}"


def test_pages_load_nothing_from_elsewhere(site: dict[Path, Page]) -> None:
    for file, page in site.items():
        for place in page.loads:
            assert (file.parent / place.partition("?")[0]).exists(), f"{file} loads {place}"
    styles = [style for file in site for style in file.parent.glob("assets/**/*.css")]
    assert styles
    assert not [
        style for style in styles if re.search(r"(?:@import|url\()\s*[\"']?(?:\w+:)?//", style.read_text("utf-8"))
    ]


def test_no_page_has_accidental_quotations_or_unfinished_text(site: dict[Path, Page]) -> None:
    for file, page in site.items():
        assert not page.tags["blockquote"], f"{file}: a line that starts with > became a quotation"
        assert not re.search(r"\b(?:TODO|FIXME|TBD|XXX)\b|lorem ipsum|```", page.text), file


def test_every_formula_is_drawn_without_a_script(site: dict[Path, Page]) -> None:
    written = sum(page.read_text("utf-8").count("```math\n") for page in (ROOT / "docs").rglob("*.md"))
    assert written > 50
    assert sum(page.tags["math"] for page in site.values()) == written
    assert not any(page.tags["merror"] for page in site.values())
    blanket = next(page for file, page in site.items() if file.parent.name == "blanket")
    assert blanket.tags["sub"] > 20
    assert "W_i" not in blanket.text


def described(name: str) -> Any:
    """Return what a heading of the reference describes."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            thing: Any = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        try:
            for part in parts[cut:]:
                thing = getattr(thing, part)
        except AttributeError:
            continue
        return thing
    raise AssertionError(name)


def words(text: str) -> set[str]:
    """Return the words of a text with what is a formula in them; where sentences end does not matter."""
    return {word.strip(".,:;()`\"'") for word in re.sub(r"[`\\]", "", text).split()}


def test_the_reference_shows_every_word_of_every_docstring(site: dict[Path, Page]) -> None:
    """Stars, underscores and brackets of formulas are what Markdown would take away."""
    page = library(site)
    names = [name for name in page.ids if name.startswith("hushuffle.")]
    assert len(names) > 400
    shown = words(page.text)
    lost = {}
    for name in names:
        text = described(name).__doc__ if not isinstance(described(name), (str, float, int, tuple)) else ""
        text = re.sub(r"^ *(?:Args|Attributes|Raises|Returns|Yields):$", "", text or "", flags=re.MULTILINE)
        lost[name] = words(text) - shown
    assert not {name: gone for name, gone in lost.items() if gone}


def test_examples_of_the_reference_are_blocks_of_lines(site: dict[Path, Page]) -> None:
    assert ">>> print(hs.dp.epsilon(survey, delta=1e-6))\n0.05113 to 0.05114 nats" in library(site).text
    assert page_lines_with_two_prompts(library(site).text) == []


def page_lines_with_two_prompts(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.count(">>>") > 1]


def test_every_public_name_is_in_the_reference(site: dict[Path, Page]) -> None:
    names = [name for name in vars(hs)["__all__"] if name != "__version__"]
    names += [f"{room}.{name}" for room in ROOMS for name in vars(getattr(hs, room))["__all__"]]
    page = library(site)
    aliases = {
        "bloom.snr": "questions.bloom.transition",
        "bloom.plan_views": "questions.bloom.plan_views.plan_views",
        "order.Groups": "Groups",
        "dp.certificate": "questions.dp.certificate.certificate",
    }
    aliases |= {
        f"order.{name}": f"questions.order.{name}.{name}" for name in ("displacement", "preservation", "sensitivity")
    }
    assert not [name for name in names if f"hushuffle.{aliases.get(name, name)}" not in page.ids]
    for heading in (
        "hs.Protocol",
        "hs.dp.epsilon(protocol, *, delta,",
        "hs.order.sensitivity",
        "hushuffle.estimation.reach",
    ):
        assert re.search(rf"^\s*(?:[\w ]+: )?{re.escape(heading)}", page.text, flags=re.MULTILINE), heading


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# Frames of a phone's width hold the pages; a script tells how wide each is. Their own scripts do not run.
PROBE = """<!DOCTYPE html><title>waiting</title>{frames}<script>
addEventListener("load", () => {{
  document.title = JSON.stringify([...document.querySelectorAll("iframe")].map(frame => {{
    const page = frame.contentDocument;
    page.querySelectorAll(".md-sidebar, .md-header__topic").forEach(drawn => drawn.remove()); // by scripts
    const styled = getComputedStyle(page.querySelector(".md-header")).position;
    return [frame.name, page.documentElement.scrollWidth, styled];
  }}));
}});
</script>"""


def probed(text: str, folder: Path) -> Any:
    """Return what a page finds out about itself and writes into its title."""
    page = folder / "probe.html"
    page.write_text(text, encoding="utf-8")
    command = [str(CHROMIUM), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    command += [f"--user-data-dir={folder / 'profile'}", "--dump-dom", page.as_uri()]
    dumped = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    title = re.search(r"<title>(.*?)</title>", dumped, re.DOTALL)
    assert title is not None
    return json.loads(html.unescape(title[1]))


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
def test_no_page_is_wider_than_a_phone(site: dict[Path, Page], tmp_path: Path) -> None:
    frames = []
    for file in site:
        text = re.sub(r"<script.*?</script>", "", file.read_text("utf-8"), flags=re.DOTALL)
        page = html.escape(text.replace("<head>", f'<head><base href="{file.as_uri()}">', 1))
        frames.append(
            f'<iframe name="{file.parent.name}" style="width:390px;height:800px;border:0" srcdoc="{page}"></iframe>'
        )
    measured = probed(PROBE.format(frames="".join(frames)), tmp_path)
    assert len(measured) == len(site)
    assert not [page for page in measured if page[1] > 390]
    assert {styled for *_, styled in measured} == {"sticky"}, "the pages' own style was loaded"


LABELS = """<!DOCTYPE html><title>waiting</title>{pictures}<script>
addEventListener("load", () => {{
  const clash = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3;  // lines of a text may touch
  document.title = JSON.stringify([...document.querySelectorAll("svg")].map(picture => {{
    const texts = [...picture.querySelectorAll("text")].filter(text => text.textContent.trim());
    const boxes = texts.map(text => text.getBoundingClientRect());
    const over = texts.flatMap((text, i) => texts.filter((_, j) => j > i && clash(boxes[i], boxes[j])).map(
      other => text.textContent + " / " + other.textContent));
    return [texts.length, over];
  }}));
}});
</script>"""


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
def test_labels_of_pictures_do_not_lie_on_each_other(tmp_path: Path) -> None:
    files = sorted((ROOT / "docs").glob("*.svg"))
    pictures = "".join(f"<div>{file.read_text('utf-8')}</div>" for file in files)
    measured = probed(LABELS.format(pictures=pictures), tmp_path)
    assert len(measured) >= len(files) > 4
    assert all(texts > 5 for texts, _ in measured)
    assert not [over for _, over in measured if over]
