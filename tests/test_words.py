"""Texts use the field's words, and names in the code are nouns: both are read once."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
SOURCES: Final = sorted(start.parent for start in ROOT.glob("packages/*/src/*/__init__.py"))
"""The folders of the import packages."""
GENERATED: Final = {"docs/reference/verdicts.md"}
"""Pages that quote papers literally."""

WORDS: Final = {
    r"\bcoins?\b(?!=)": "randomness, random bits; of a protocol: Bernoulli trials",
    r"\btold from (?:the )?noise\b": "statistically significant",
    r"\bsays? nothing\b": "blanket messages",
    r"\bbesides\b": "in addition; additional",
    r"\b(?:upper|lower) ends?\b|\bboth ends\b": "upper bound, lower bound",
    r"\b[Ww]hoever\b|\b[Ww]ho reads\b|\b[Tt]he readers?\b": "the analyst, an observer of the release",
    r"\b[Nn]obody\b|\b[Ss]omebody\b": "name the actor: a client, the shuffler, the operator, an adversary",
    r"\btell the reader\b": "collude with the analyst",
    r"\bguessers?\b": "adversary (uninformed; strong)",
    r"\bbroken shuffler\b": "compromised shuffler",
    r"\bgiv(?:e|es|en|ing) away\b": "reveal",
    r"\b[Ff]ake (?:users?|people|persons?)\b": "Sybil clients",
    r"\bkept reports?\b": "memoized reports",
    r"\bheld to\b": "checked against",
    r"\bhow far a share can be moved\b": "maximal poisoning gain",
    r"\bmend(?:s|ed|ing)?\b": "fix",
    r"\bmade[- ]up\b": "generated, synthetic; forged",
    r"\b(?:comes?|came|coming) (?:out|to)\b": "the result is, the total is",
    r"\bby a coin\b": "stochastic rounding",
    r"\blogos?\b": "bit pattern",
    r"\bfillings?\b": "datasets",
    r"\bthe odds of any conclusion\b.*\bthe odds of any conclusion\b": "once a page",
}
"""What is not written, and what is written in its place."""

ALLOWED: Final[dict[str, str]] = {
    "packages/hushuffle/src/hushuffle/collection/release.py: coins": "a label: another one changes keyed releases",
    "docs/explanation/errata.md: logos": "the paper's own word, in quotations of it",
    "docs/explanation/errata.md: logo": "the paper's own word, in quotations of it",
    "packages/hushuffle-papers/src/hushuffle_papers/buffling/bloom.py: logo": "the paper's word, in quotations",
    "docs/reference/library.md: logos": "the name of a module, whose paper calls bit patterns so",
}
"""Places (file: words) where a word of the list stands, and why; at most 20."""

NAMES: Final = {"found", "said", "told", "asked", "made", "one", "known", "kept", "few", "some"}
"""Names that do not say what they hold: only in expressions of one line."""


def prose(page: Path) -> str:
    """Return a page without its code."""
    text = re.sub(r"^( *)```.*?^\1```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`|<code>.*?</code>|\]\([^)]*\)|\$[^$\n]+\$", " ", text)


def pages(room: str) -> Iterator[tuple[str, int, str]]:
    """Yield every line of the documentation in a folder ("." is the root), or of a page: file, number, text."""

    def inside(name: str) -> bool:
        return room in (name, name.partition("/")[0] if "/" in name else ".")

    for page in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "clients").glob("*/*.md")]):
        name = page.relative_to(ROOT).as_posix()
        if inside(name) and name not in GENERATED and "node_modules" not in name:
            yield from ((name, number, line) for number, line in enumerate(prose(page).splitlines(), 1))
    for template in sorted(file for source in SOURCES for file in source.rglob("*.html")):
        name = template.relative_to(ROOT).as_posix()
        if inside(name):
            lines = template.read_text(encoding="utf-8").splitlines()
            yield from ((name, number, line) for number, line in enumerate(lines, 1))


def docstrings(tree: ast.Module) -> Iterator[tuple[ast.Constant, bool]]:
    """Yield docstrings, also those of variables, with whether they are public."""

    def public(name: str) -> bool:
        return not name.startswith("_") or name.startswith("__")

    def inside(node: ast.Module | ast.ClassDef, *, visible: bool) -> Iterator[tuple[ast.Constant, bool]]:
        before = ""
        for number, child in enumerate(node.body):
            text = child.value if isinstance(child, ast.Expr) else None
            if isinstance(text, ast.Constant) and isinstance(text.value, str):
                yield text, visible and (number == 0 or public(before))
            if isinstance(child, ast.ClassDef):
                yield from inside(child, visible=visible and public(child.name))
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                first = child.body[0]
                if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                    yield first.value, visible and public(child.name)
            targets = child.targets if isinstance(child, ast.Assign) else [getattr(child, "target", None)]
            before = targets[0].id if isinstance(targets[0], ast.Name) else ""

    yield from inside(tree, visible=True)


def without_doctests(text: str) -> str:
    return re.sub(r"^\s*(?:>>>|\.\.\.).*$", "", text, flags=re.MULTILINE)


def source_files() -> dict[str, list[Path]]:
    """Return the source files of each room of the library, and of each other package."""
    files: dict[str, list[Path]] = {}
    for source in SOURCES:
        for file in sorted(source.rglob("*.py")):
            room = file.relative_to(source).parts[0] if source.name == "hushuffle" else source.name
            files.setdefault(room, []).append(file)
    return files


def files(room: str) -> list[Path]:
    return source_files()[room]


def sentences(room: str) -> Iterator[tuple[str, int, str]]:
    """Yield the texts of a package: messages, help, reports, and docstrings of what is public."""
    for file in files(room):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        described = {id(node): shown for node, shown in docstrings(tree)}
        name = file.relative_to(ROOT).as_posix()
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and described.get(id(node), True):
                is_text = id(node) in described or " " in node.value
                text = re.sub(r"`[^`\n]*`|^ +\w+:", " ", without_doctests(node.value), flags=re.MULTILINE)
                if is_text:
                    yield from ((name, node.lineno + more, line) for more, line in enumerate(text.splitlines()))


def misplaced(texts: Iterator[tuple[str, int, str]]) -> list[str]:
    """Return the places of words that are not written."""
    wrong = []
    for name, number, text in texts:
        for pattern, better in WORDS.items():
            match = re.search(pattern, text)
            if match and f"{name}: {match[0]}" not in ALLOWED:
                wrong.append(f"{name}:{number}: {match[0]!r} (write: {better})")
    return wrong


def long_lived(tree: ast.Module) -> Iterator[ast.Name | ast.arg]:
    """Yield local names of the list that are not used up in the line that gives them a value."""
    comprehensions = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda)
    short = set[int]()
    for node in ast.walk(tree):
        if isinstance(node, comprehensions) and node.lineno == node.end_lineno:
            short |= {id(inner) for inner in ast.walk(node)}
    for scope in ast.walk(tree):
        if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)):
            arguments = [*scope.args.posonlyargs, *scope.args.args, *scope.args.kwonlyargs]
            if scope.name.startswith("_"):
                yield from (argument for argument in arguments if argument.arg in NAMES)
            for node in ast.walk(scope):
                stored = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
                if isinstance(node, ast.Name) and stored and node.id in NAMES and id(node) not in short:
                    yield node


@pytest.mark.parametrize("room", ["README.md", "docs", "clients", "packages", "."])
def test_pages_use_the_words_of_the_field(room: str) -> None:
    wrong = misplaced(pages(room))
    assert not wrong, "\n".join(wrong)


def rooms() -> list[str]:
    return sorted(source_files())


@pytest.mark.parametrize("room", rooms())
def test_texts_of_the_program_use_the_words_of_the_field(room: str) -> None:
    wrong = misplaced(sentences(room))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("room", rooms())
def test_private_names_say_what_they_hold(room: str) -> None:
    wrong = []
    for file in files(room):
        for node in long_lived(ast.parse(file.read_text(encoding="utf-8"))):
            name = node.id if isinstance(node, ast.Name) else node.arg
            wrong.append(f"{file.relative_to(ROOT)}:{node.lineno}: {name}")
    assert not wrong, "\n".join(wrong)


def test_exceptions_are_few_and_have_a_reason() -> None:
    assert len(ALLOWED) <= 20
    assert all(len(reason.split()) > 2 for reason in ALLOWED.values())
