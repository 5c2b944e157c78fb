"""The documents are tested: their Python runs, their specifications load, their commands exist."""

from __future__ import annotations

import ast
import doctest
import importlib
import itertools
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import hushuffle as hs
from hushuffle.specification import parse
from hushuffle.specification.reading import load_collection
from hushuffle_network.queries.specification import load_plan
from hushuffle_papers.registry import targets
from scripts import script

ROOT = Path(__file__).parents[1]
PROJECTS = sorted(ROOT.glob("packages/*/pyproject.toml"))
THEORY = ROOT / "docs" / "theory"
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_on_the_page_runs(page: Path) -> None:
    failed, _ = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_on_the_page_stands_in_a_block(page: Path) -> None:
    """Outside one a prompt becomes a quotation in a quotation, and its lines run together."""
    outside = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    assert not re.findall(r"^>>> .*", outside, flags=re.MULTILINE)


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(
        rf"^```{language}(?: title=.*?)?\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "docs/tutorials/defend-a-survey.md"], ids=lambda p: p.name)
def test_whole_specifications_on_the_page_load(page: Path) -> None:
    specifications = [block for block in blocks(page, "toml") if "[targets]" in block]
    assert specifications
    for text in specifications:
        assert parse(text).targets.delta == 1e-6


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_specifications_that_look_whole_load(page: Path, tmp_path: Path) -> None:
    """A block that says who is asked and what devices do is one that people copy: nothing may be missing in it."""
    for number, text in enumerate(blocks(page, "toml")):
        tables = tomllib.loads(text)
        file = tmp_path / f"{number}.toml"
        file.write_text(text, encoding="utf-8")
        if {"query", "network"} <= tables.keys():
            load_plan(file)
        elif {"population", "randomizer"} <= tables.keys() or "columns" in tables:
            load_collection(file)


def cells(line: str) -> int:
    """Return how many cells a line of a table has."""
    plain = re.sub(r"`[^`]*`", "", line.strip()).replace("\\|", "")
    return plain.count("|") - 1


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_row_of_a_table_has_the_cells_of_its_head(page: Path) -> None:
    text = re.sub(r"^( *)```.*?^\1```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    head, wrong = None, []
    for line in text.splitlines():
        if not line.strip().startswith("|"):
            head = None
        elif head is None:
            head = cells(line)
        elif cells(line) != head:
            wrong.append(line)
    assert not wrong


def test_the_citation_has_version_date_and_address() -> None:
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    entries = dict(re.findall(r"^([a-z-]+): (.+)$", text, flags=re.MULTILINE))
    assert entries["version"] == hs.__version__
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", entries["date-released"])
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## {hs.__version__} ({entries['date-released']})" in changelog
    assert entries["url"].startswith('"https://')


def test_the_readme_names_commands_that_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    commands = [
        line.removeprefix("$ ") for block in blocks(ROOT / "README.md", "console") for line in block.splitlines()
    ]
    assert [command for command in commands if command.startswith("make ")] == ["make demo", "make test"]
    for command in commands[-2:]:
        assert re.search(rf"^{command.removeprefix('make ')}:", makefile, flags=re.MULTILINE)
    assert "make test" in (ROOT / ".ci/run").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_files_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        assert target.startswith("https://") or (page.parent / target).exists(), target
        inside = page.parent == ROOT or (page.parent / target).resolve().is_relative_to(ROOT / "docs")
        assert inside or target.startswith("https://"), f"{target} is not among the pages"


def resolved(name: str) -> bool:
    """Whether a dotted name is that of a module, or of something in one."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        try:
            for part in parts[cut:]:
                found = getattr(found, part)
        except AttributeError:
            return False
        return True
    return False


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_names_and_paths_on_the_page_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    names = {name.replace("hs.", "hushuffle.", 1) for name in re.findall(r"`((?:hushuffle|hs)(?:\.\w+)+)", text)}
    assert not [name for name in sorted(names) if not name.endswith(".toml") and not resolved(name)]
    paths = re.findall(r"`((?:src|tests|benchmarks|docs|examples)/[\w./-]+)`", text)
    assert not [path for path in paths if not (ROOT / path).exists()]


def test_the_glossary_is_in_order() -> None:
    terms = re.findall(
        r"^\*\*(.*?)\.\*\*", (ROOT / "docs/reference/glossary.md").read_text("utf-8"), flags=re.MULTILINE
    )
    assert len(terms) > 50
    assert terms == sorted(terms, key=str.casefold)


STATEMENT = r"(?:Theorem|Lemma|Corollary|Remark) \d+"


def statements(page: Path) -> list[str]:
    return re.findall(rf"^## ({STATEMENT})$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)


@pytest.mark.parametrize("page", sorted(THEORY.glob("*.md")), ids=lambda page: page.name)
def test_statements_of_a_page_of_theory_are_numbered_through(page: Path) -> None:
    numbers = [int(statement.split()[1]) for statement in statements(page)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert numbers


def named(text: str) -> set[str]:
    """Return the statements in "Theorem 1", "Lemmas 2 and 3", "Theorems 4 to 7" (the ends), one by one."""
    found = set()
    for kind, numbers in re.findall(
        r"(Theorem|Lemma|Corollar|Remark)(?:s|y|ies)? (\d+(?:(?:, | and | to )\d+)*)", text
    ):
        found |= {f"{kind.replace('Corollar', 'Corollary')} {number}" for number in re.findall(r"\d+", numbers)}
    return found


def citations(text: str) -> set[tuple[str, str]]:
    """Return (page, statement) for every citation of a page of theory, with its path or as a link."""
    text = " ".join(text.split())
    kinds = r"((?:Theorem|Lemma|Corollar|Remark)[^;().]*)"
    by_path = re.findall(rf"docs/theory/([\w-]+\.md), {kinds}", text)
    by_link = re.findall(rf"\]\((?:\.\./theory/)?([\w-]+\.md)\), ({STATEMENT})", text)
    before = re.findall(rf"({STATEMENT}) of (?:the )?\[[^]]*\]\(([\w-]+\.md)\)", text)
    pairs = [*by_path, *by_link, *((page, statement) for statement, page in before)]
    return {(page, statement) for page, rest in pairs for statement in named(rest)}


def test_cited_statements_of_theory_exist() -> None:
    files = [file for room in ("packages", "tests", "docs", "benchmarks") for file in (ROOT / room).rglob("*")]
    texts = [file.read_text(encoding="utf-8") for file in files if file.suffix in {".py", ".md"}]
    cited = set().union(*map(citations, texts))
    assert len(cited) > 60
    assert not [(page, statement) for page, statement in cited if statement not in statements(THEORY / page)]


def test_nothing_cites_what_a_reader_does_not_have() -> None:
    """A source is a paper (author, year, theorem) or a page of docs/: no number of a private list, no private note."""
    private = r"(?<!/)\btheory\.md|theory §|\bseeds? 0\d\d\b|\bthe seed's\b|\b(?:house|design|brief)\.md|/work/"
    rooms = ("packages", "tests", "docs", "benchmarks", "examples", ".github")
    files = [*ROOT.glob("*.*"), *(file for room in rooms for file in (ROOT / room).rglob("*"))]
    for file in files:
        if file.suffix in {".py", ".md", ".toml", ".yml", ".cff"} and file != Path(__file__):
            assert not re.findall(private, file.read_text(encoding="utf-8"), flags=re.IGNORECASE), file


def test_the_workflow_checks_every_python_that_the_package_names() -> None:
    project = tomllib.loads((ROOT / "packages/hushuffle/pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = [line.rpartition(" ")[2] for line in project["classifiers"] if ":: Python :: 3." in line]
    workflow = (ROOT / ".github/workflows/check.yml").read_text(encoding="utf-8")
    assert re.findall(r'"(3\.\d+)"', workflow.partition("  docs:")[0]) == named
    assert project["requires-python"] == f">={named[0]}"
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"run: make (\S+)", workflow):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)


def test_hooks_run_what_make_check_runs() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    entries = re.findall(r"entry: \.venv/bin/(.*)", (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert entries
    for entry in entries:
        assert f"$(BIN)/{entry}" in makefile


def test_the_extra_all_has_every_extra_for_use() -> None:
    packages = {path.parent.name: tomllib.loads(path.read_text("utf-8"))["project"] for path in PROJECTS}
    extras = packages["hushuffle"]["optional-dependencies"]
    first, *others = extras["all"]
    assert set(re.findall(r"[\w-]+", first)) - {"hushuffle"} == extras.keys() - {"all", "program"}
    assert {other.partition("==")[0] for other in others} == packages.keys() - {"hushuffle"}


def test_each_package_has_the_licence() -> None:
    for path in PROJECTS:
        assert path.with_name("LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_the_packages_have_one_version_and_name_it() -> None:
    for path in PROJECTS:
        text = path.read_text("utf-8")
        assert tomllib.loads(text)["project"]["version"] == hs.__version__
        assert set(re.findall(r"(?:hushuffle|certificate)[\w-]*(?:\[[^]]*\])?==([\d.]+)", text)) <= {hs.__version__}


@pytest.mark.parametrize("name", ["program", "specification", "plan-specification"])
def test_a_page_of_reference_is_that_of_the_code(name: str) -> None:
    module = script("docs/reference")
    (page,) = (page for page in module.PAGES if page.stem == name)
    assert page.read_text("utf-8") == module.PAGES[page](), "run python docs/reference.py"


def test_the_page_of_errata_is_that_of_its_data() -> None:
    module = script("docs/errata")
    assert module.PAGE.read_text("utf-8") == module.page(), "run python docs/errata.py"
    data = module.entries()
    assert list(data) == ["version", "papers", "errata"]
    names = [entry["paper"] for entry in data["errata"]]
    assert [name for name, _ in itertools.groupby(names)] == list(data["papers"])  # each paper once, none without
    assert {target.paper for target in targets().values()} == data["papers"].keys() - {"elsewhere"}
    ids = [entry["id"] for entry in data["errata"]]
    assert len(set(ids)) == len(ids)
    for entry in data["errata"]:
        words = ["id", "paper", "place", "printed", "corrected", "consequence", "shown_by"]
        assert [key for key in entry if key != "proof"] == words
        assert all(entry[word] for word in words)
        assert entry["id"].startswith(f"{entry['paper']}-")


def test_every_erratum_names_a_test_or_a_target_that_exists() -> None:
    known = targets()
    for entry in script("docs/errata").entries()["errata"]:
        for name in entry["shown_by"]:
            file, _, function = name.partition("::")
            if function:
                code = ast.parse((ROOT / file).read_text("utf-8"))
                assert file.startswith("tests/")
                assert function.startswith("test_")
                assert function in {node.name for node in code.body if isinstance(node, ast.FunctionDef)}, name
            else:
                assert name in known
        if "proof" in entry:
            page, _, anchor = entry["proof"].partition("#")
            assert anchor.replace("-", " ").capitalize() in statements(ROOT / page)


def test_the_picture_of_the_architecture_is_that_of_the_contracts() -> None:
    module = script("docs/architecture")
    assert module.PICTURE.read_text("utf-8") == module.picture(), "run python docs/architecture.py"
    rooms = {room for layer in module.layers() for room in layer}
    there = {path.stem for path in module.SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    packages = {"hushuffle_network", "hushuffle_papers", "shuffle_certificate"}
    assert (there - {"__init__", "__main__", "_version"}) | packages == rooms
    table = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("## How a formula gets in")[0]
    rows = "\n".join(line for line in table.splitlines() if line.startswith("| `"))
    assert rooms == {name.removesuffix(".py").rstrip("/") for name in re.findall(r"`([\w.]+/?)`", rows)} & rooms
