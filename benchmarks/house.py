"""Measure the building: size, tests of a class outside its own file, and the files that two jobs walk through.

    python benchmarks/house.py [--class-tests | --walk | --json] [CHECKOUT ...]

Each checkout is measured with the code that it holds. A walk counts the Python files of the package in which a
function runs once everything is imported: one epsilon from TOML to its row on the page, a whole `assess` of a survey
without data, and `collect` of one column from CSV to a folder of reports.

    --class-tests   lists the tests of a class outside its own file
    --walk          lists the files of the walks
    --json          prints the figures as JSON
"""

from __future__ import annotations

import ast
import functools
import io
import json
import os
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

_SURVEY = """
title = "A town"
[population]
n = 1000
k = 4
[randomizer]
kind = "randomized-response"
epsilon = 2.0
[shuffler]
kind = "uniform"
[targets]
delta = 1e-6
"""
_COLLECTION = """
title = "A town"
[population]
data = "people.csv"
column = "answer"
categories = ["no", "yes"]
[randomizer]
kind = "randomized-response"
epsilon = 2.0
[shuffler]
kind = "uniform"
[targets]
delta = 1e-4
"""
_WALKER = """
import json, os, sys, threading
home = tuple(json.loads(sys.argv[1]))
files = set()
def seen(frame, event, _):
    if event == "call" and frame.f_code.co_filename.startswith(home) and frame.f_code.co_name != "<module>":
        files.add(frame.f_code.co_filename)
what = sys.argv[2]
import hushuffle as hs
if what == "epsilon":
    from pathlib import Path
    from hushuffle import report
    from hushuffle.specification import load
    try:
        from hushuffle.assessment.deployment import assess
        from hushuffle.assessment.findings import central
    except ImportError:  # before the rooms were moved
        from hushuffle.workflows.assess import assess
        from hushuffle.workflows.findings import central
    made = assess(load(Path("town.toml")))
    def row():
        asked = load(Path("town.toml"))
        randomizer, shuffler = asked.randomizer.build(4), asked.shuffler.build()
        central(hs.Protocol(randomizer=randomizer, shuffler=shuffler, n=1000), delta=asked.targets.delta)
        report.html(made)
    row()  # everything is imported now
    sys.setprofile(seen)
    row()
else:
    from hushuffle.cli import main
    def run(out):
        words = ["town.toml", "--out", out]
        return main([what, *words])
    assert run("first") == 0  # everything is imported now
    threading.setprofile(seen)
    sys.setprofile(seen)
    run("second")
sys.setprofile(None)
print("\\n".join(sorted(files)), file=sys.stderr)
"""


def _packages(root: Path) -> list[Path]:
    """Return the folders of the import packages of a checkout."""
    starts = [*root.glob("src/*/__init__.py"), *root.glob("packages/*/src/*/__init__.py")]
    return sorted(start.parent for start in starts)


def _modules(root: Path) -> list[Path]:
    return sorted(path for package in _packages(root) for path in package.rglob("*.py"))


def _room(root: Path, path: Path) -> str:
    """Return the room of a file: the first folder in its package."""
    return next(path.relative_to(package).parts[0] for package in _packages(root) if path.is_relative_to(package))


_parsed = functools.cache(ast.parse)


@functools.cache
def _nodes(tree: ast.AST) -> list[ast.AST]:
    """Return all nodes of a file, which many figures go through."""
    return list(ast.walk(tree))


def _code_lines(text: str) -> int:
    """Return the number of lines that hold code: no comment, no docstring, no blank line."""
    lines: set[int] = set()
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in skipped:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in _nodes(_parsed(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def _class_tests(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and class of each `isinstance` or class pattern on a class that another file defines.

    Errors are not counted: to catch or sort them is what they are for.
    """
    tree = _parsed(path.read_text("utf-8"))
    foreign = {
        alias.asname or alias.name
        for node in _nodes(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hushuffle")
        for alias in node.names
        if alias.name[:1].isupper() and not alias.name.isupper() and not alias.name.endswith("Error")
    }
    for node in _nodes(tree):
        asked: list[ast.expr] = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            asked = [node.args[1]]
        elif isinstance(node, ast.MatchClass):
            asked = [node.cls]
        names = {inner.id for each in asked for inner in ast.walk(each) if isinstance(inner, ast.Name)}
        names |= {inner.attr for each in asked for inner in ast.walk(each) if isinstance(inner, ast.Attribute)}
        if names & foreign:
            yield asked[0].lineno, ", ".join(sorted(names & foreign))


def _walk(root: Path, what: str) -> list[str]:
    """Return the files of the packages that a job runs through."""
    packages = _packages(root)
    with tempfile.TemporaryDirectory() as folder:
        text = _COLLECTION if what == "collect" else _SURVEY
        Path(folder, "town.toml").write_text(text, encoding="utf-8")
        Path(folder, "people.csv").write_text("answer\n" + "yes\nno\nno\n" * 400, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-c", _WALKER, json.dumps([f"{package}{os.sep}" for package in packages]), what],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(str(package.parent) for package in packages)},
            capture_output=True,
            text=True,
            check=True,
        )
    return [line.removeprefix(f"{root}{os.sep}") for line in done.stderr.splitlines() if line.startswith(str(root))]


_FLAGS = {
    *("dummy_law", "expected_dummies", "all_coins", "sum_noise", "with_dummies", "value_law", "thinned"),
    *("most_dummies", "placed", "tossed", "own_messages", "most_own_messages", "best_own_messages", "most_messages"),
    *("with_own_messages", "kept"),
}
"""Members of a shuffler with a default: what others ask to find out which one it is."""

_KINDS = {
    *("is_sum", "SumSpecification", "ReachPopulation", "MixedSpecification", "Collection", "sends_more", "memoised"),
    *("has_messages_to_choose", "adds_dummies", "is_mixed", "kind_of_deployment"),
}
_JOBS = {"assessment", "attacks", "cli", "collection", "queries", "report", "specification"}


def _reads(tree: ast.Module, names: set[str]) -> int:
    """Return how often an attribute of these names is read."""
    return sum(isinstance(node, ast.Attribute) and node.attr in names for node in _nodes(tree))


def _conditions(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield the conditions: what is tested, filtered, compared or combined, and the classes of class tests."""
    for node in _nodes(tree):
        match node:
            case ast.If() | ast.IfExp() | ast.While() | ast.Assert():
                yield node.test
            case ast.comprehension():
                yield from node.ifs
            case ast.BoolOp():
                yield from node.values
            case ast.UnaryOp(op=ast.Not()):
                yield node.operand
            case ast.Compare() | ast.Call(func=ast.Name(id="isinstance")):
                yield node
            case ast.MatchClass():
                yield node.cls


def _kinds_asked(tree: ast.Module) -> int:
    """Return how often a condition depends on the kind of a deployment.

    Counted are mentions of `_KINDS` in conditions, of `several` as a member or as a variable that holds this member,
    of `arrangement` in a comparison with None, and tests whether a mapping of columns has the key "". Annotations,
    arguments and other reads are no questions. A mention in nested conditions counts once.
    """
    kinds, places = set(_KINDS), set[tuple[int, int]]()
    for node in _nodes(tree):
        if isinstance(node, ast.Assign) and any(
            isinstance(at, ast.Attribute) and at.attr == "several" for at in ast.walk(node.value)
        ):
            kinds |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    for node in (inner for condition in _conditions(tree) for inner in ast.walk(condition)):
        match node:
            case ast.Attribute(attr=name) | ast.Name(id=name):
                asked = name in kinds or (name == "several" and isinstance(node, ast.Attribute))
            case ast.Compare(left=ast.Constant(value=""), ops=[ast.In() | ast.NotIn()]):
                asked = True
            case ast.Compare(
                left=ast.Attribute(attr="arrangement") | ast.Name(id="arrangement"), ops=[ast.Is() | ast.IsNot()]
            ):
                asked = True
            case _:
                asked = False
        if asked:
            places.add((node.lineno, node.col_offset))
    return len(places)


def _helpers_used_once(tree: ast.Module) -> list[int]:
    """Return the lengths of private functions that their file names once apart from their definition."""
    functions = [node for node in _nodes(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("_")]
    uses = Counter(node.id for node in _nodes(tree) if isinstance(node, ast.Name))
    uses += Counter(node.attr for node in _nodes(tree) if isinstance(node, ast.Attribute))
    once = [node for node in functions if not node.name.startswith("__") and uses[node.name] == 1]
    return [(node.end_lineno or node.lineno) - node.lineno + 1 for node in once]


_GENERATED = {"program.md", "specification.md", "plan-specification.md", "support.md", "verdicts.md", "errata.md"}
"""Pages that a program writes."""


def _documentation(root: Path) -> tuple[int, int]:
    """Return the number of pages of README and docs, and of words on those that are written by hand."""
    pages = [root / "README.md", *(root / "docs").rglob("*.md")]
    texts = [page.read_text("utf-8").split() for page in pages if page.name not in _GENERATED]
    return len(pages), sum(any(sign.isalnum() for sign in word) for text in texts for word in text)


def measure(root: Path) -> dict[str, object]:
    """Return the figures of one checkout."""
    modules = _modules(root)
    texts = {path: path.read_text("utf-8") for path in modules}
    lines = {path: text.count("\n") for path, text in texts.items()}
    tests = {path: list(_class_tests(path)) for path in modules}
    trees = {path: _parsed(text) for path, text in texts.items()}
    rooms = {path: _room(root, path) for path in modules}
    library = {path for path in modules if "hushuffle" in path.parts}
    outside = {path: tree for path, tree in trees.items() if "shufflers" not in path.parts}
    classes = Counter(node.name for tree in trees.values() for node in _nodes(tree) if isinstance(node, ast.ClassDef))
    once = [length for tree in trees.values() for length in _helpers_used_once(tree)]
    pages, words = _documentation(root)
    return {
        "files": len(modules),
        "files of the library with its program": len(library),
        "lines": sum(lines.values()),
        "lines of the library with its program": sum(lines[path] for path in library),
        "code lines": sum(_code_lines(text) for text in texts.values()),
        "lines of the longest file": max(lines.values()),
        "files over 400 lines": sum(count > 400 for count in lines.values()),
        "files under 40 code lines": sum(_code_lines(text) < 40 for text in texts.values()),
        "class tests outside the class's file": sum(map(len, tests.values())),
        "files with such tests": sum(map(bool, tests.values())),
        "flags of shufflers read outside their room": sum(_reads(tree, _FLAGS) for tree in outside.values()),
        "questions which kind of deployment it is": sum(
            _kinds_asked(tree) for path, tree in trees.items() if rooms[path] in _JOBS
        ),
        "class names with several meanings": sum(count > 1 for count in classes.values()),
        "private helpers used once": len(once),
        "lines of such helpers": sum(once),
        "pages of documentation": pages,
        "words of documentation by hand": words,
        **{f"files walked by {what}": len(_walk(root, what)) for what in ("epsilon", "assess", "collect")},
    }


def main() -> None:
    """Print one row for each figure, one column for each checkout."""
    options = [word for word in sys.argv[1:] if word.startswith("--")]
    roots = [Path(word).resolve() for word in sys.argv[1:] if not word.startswith("--")] or [Path(__file__).parents[1]]
    if "--class-tests" in options:
        for path in _modules(roots[0]):
            for line, name in _class_tests(path):
                print(f"{path.relative_to(roots[0])}:{line}: {name}")
        return
    if "--walk" in options:
        for what in ("epsilon", "assess", "collect"):
            print(what, *_walk(roots[0], what), sep="\n  ")
        return
    columns = [measure(root) for root in roots]
    if "--json" in options:
        print(json.dumps(columns, indent=2))
        return
    for name in columns[0]:
        print(f"{name:<44}", *(f"{column[name]!s:>10}" for column in columns))


if __name__ == "__main__":
    main()
