from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import hushuffle as hs
from hushuffle.errors import DataError, SpecificationError, UnsupportedProtocolError
from hushuffle.mechanisms import randomizers
from hushuffle.mechanisms.sketches import BloomEncoder, align
from hushuffle.specification import Audiences, ReachPopulation, Specification, load, parse
from hushuffle.specification.reach import AudiencePopulation, about_reach, assumed_people
from oracles.reach_audiences import share_in_exactly

EXAMPLE = Path(__file__).parents[2] / "examples" / "reach.toml"
KEY = "0123456789abcdef" * 4
POPULATION = """[population]
publishers = { tv = "tv.csv", web = "web.parquet" }
column = "id"
key_file = "reach.key"
bits = 1000
"""
PLANNED = """[population]
people = 1000
audiences = { tv = 300, web = 200 }
bits = 1000
"""
RANDOMIZER = '[randomizer]\nkind = "bit-flipping"\np = 0.1\n'
REST = '[shuffler]\nkind = "uniform"\n[targets]\ndelta = 1e-5\n'

DUMMIES = """[randomizer]
kind = "randomized-response"
epsilon = "inf"
[shuffler]
kind = "augmented"
trusted = true
each = { kind = "discrete-gaussian", center = 60, sigma = 6.0 }
[targets]
delta = 1e-5
"""


def problems(text: str) -> list[str]:
    with pytest.raises(SpecificationError) as caught:
        parse(text)
    return [str(problem) for problem in caught.value.problems]


def study(text: str) -> ReachPopulation:
    population = parse(text + RANDOMIZER + REST).population
    assert isinstance(population, ReachPopulation)
    return population


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return two publishers' files: 0 to 299, and 200 to 449 as numbers, some twice."""
    pl.DataFrame({"id": [str(i) for i in [*range(300), 5, 5]]}).write_csv(tmp_path / "tv.csv")
    pl.DataFrame({"id": [*range(200, 450), 210]}).write_parquet(tmp_path / "web.parquet")
    (tmp_path / "reach.key").write_text(KEY, encoding="ascii")
    (tmp_path / "reach.key").chmod(0o600)
    return tmp_path


def met(folder: Path, text: str = POPULATION) -> Audiences:
    return study(text).meet(folder)


def test_audiences_in_files(folder: Path) -> None:
    found = met(folder)
    assert found.people.tolist() == [0, 200, 150, 100]
    assert found.population.n == 450
    assert found.population.counts == (300, 250)
    assert found.population.labels == ("tv", "web")
    assert found.population.source == "column id of tv.csv, web.parquet"
    assert found.population.label_of == "publisher"
    encoder = BloomEncoder(bits=1000, key=bytes.fromhex(KEY))
    expected = [encoder.encode([str(i) for i in range(300)]), encoder.encode(list(range(200, 450)))]
    assert found.filters is not None
    assert np.array_equal(align(found.filters), align(expected))
    assert KEY not in repr(found)


def test_bytes_are_identifiers_too(folder: Path) -> None:
    pl.DataFrame({"id": [b"3", b"777", b"\xff"]}).write_parquet(folder / "web.parquet")
    assert met(folder).people.tolist() == [0, 299, 2, 1]


def test_missing_identifiers(folder: Path) -> None:
    (folder / "tv.csv").write_text("id,x\n7,1\n,2\n8,3\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"tv\.csv, the identifiers of tv: `identifiers` must be all present"):
        met(folder)
    found = met(folder, POPULATION + 'missing = "drop"\n')
    assert (found.population.dropped, found.population.counts) == (1, (2, 250))
    assert parse(POPULATION + 'missing = "drop"\n' + RANDOMIZER + REST) == parse(
        parse(POPULATION + 'missing = "drop"\n' + RANDOMIZER + REST).effective()
    )


def test_files_of_publishers_in_another_encoding(folder: Path) -> None:
    plain = met(folder)
    rows = "\n".join(f"é;{number}" for number in [*range(300), 5, 5])
    (folder / "tv.csv").write_text(f"größe;id\n{rows}\n", encoding="latin-1")
    text = POPULATION + 'encoding = "latin-1"\nseparator = ";"\n'
    assert met(folder, text).people.tolist() == plain.people.tolist()
    assert parse(parse(text + RANDOMIZER + REST).effective()) == parse(text + RANDOMIZER + REST)
    assert problems(POPULATION + 'separator = "::"\n' + RANDOMIZER + REST)[0].startswith("population.separator: must")


def test_nobody(folder: Path) -> None:
    (folder / "tv.csv").write_text("id\n", encoding="utf-8")
    pl.DataFrame({"id": [""][:0]}).write_parquet(folder / "web.parquet")
    with pytest.raises(DataError, match="all audiences are empty"):
        met(folder)


def test_messages_show_no_identifier_and_no_key(folder: Path) -> None:
    pl.DataFrame({"id": [0.123456, 2.5]}).write_parquet(folder / "web.parquet")
    with pytest.raises(DataError, match="Convert them to text") as caught:
        met(folder)
    assert "0.123456" not in str(caught.value)
    (folder / "reach.key").write_text(KEY[:-2], encoding="ascii")
    with pytest.raises(DataError, match="64 hexadecimal digits") as caught:
        met(folder)
    assert KEY[:8] not in str(caught.value)


def test_the_key_in_the_environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REACH_KEY", KEY)
    found = met(folder, POPULATION.replace('key_file = "reach.key"', 'key_variable = "REACH_KEY"'))
    expected = met(folder)
    assert found.filters is not None
    assert expected.filters is not None
    assert np.array_equal(align(found.filters), align(expected.filters))


@pytest.mark.parametrize("shares", [[0.3], [0.3, 0.2], [0.5, 0.01, 0.2, 0.9]])
def test_assumed_overlaps(shares: list[float]) -> None:
    n = 10**9
    people = assumed_people(n, [round(share * n) for share in shares])
    exact = [share_in_exactly(shares, chosen) for chosen in range(1 << len(shares))]
    assert people[0] == 0
    assert people[1:] / n == pytest.approx(exact[1:], abs=1e-8)
    sets = np.arange(people.size)
    for place, share in enumerate(shares):
        assert abs(int(people[sets >> place & 1 == 1].sum()) - share * n) <= people.size


def test_assumed_audiences() -> None:
    found = study(PLANNED).meet(Path("nowhere"))
    assert found.filters is None
    assert found.people.tolist() == [0, 204, 104, 96]
    assert found.population.counts == (300, 200)
    assert found.population.n == 404
    assert found.population.source == "assumed audiences among 1,000 people"


def test_ten_audiences() -> None:
    text = PLANNED.replace("{ tv = 300, web = 200 }", f"{{ {', '.join(f'a{i} = {50 * i + 10}' for i in range(10))} }}")
    found = study(text).meet(Path())
    assert found.people.size == 1024
    assert found.people.min() == 0


@pytest.mark.parametrize("population", [POPULATION, PLANNED])
def test_the_effective_specification_reads_back_the_same(population: str) -> None:
    spec = parse(population + RANDOMIZER + REST)
    assert parse(spec.effective()) == spec
    assert [adversary.kind for adversary in spec.adversaries] == ["strong"]
    assert 'kind = "strong"' in spec.effective()
    assert Specification.model_validate(spec.model_dump() | {"population": spec.population}) == spec
    without = {key: value for key, value in spec.model_dump().items() if key != "adversaries"}
    again = Specification.model_validate(without | {"population": spec.population})
    assert [adversary.kind for adversary in again.adversaries] == ["strong"]


def test_the_example() -> None:
    spec = load(EXAMPLE)
    assert isinstance(spec.population, AudiencePopulation)
    assert spec.population.meet(EXAMPLE.parent).population.counts == (120_000, 90_000, 40_001, 24_999)
    assert about_reach({"population": spec.population})
    assert not about_reach({"population": 3})


def test_randomizers() -> None:
    kind = parse(PLANNED + RANDOMIZER + REST).randomizer
    assert kind.build(3) == randomizers.BitFlipping(width=3, p=0.1)
    assert parse(PLANNED + RANDOMIZER.replace("p = 0.1\n", "") + REST + "epsilon = 1.0\n").targets.epsilon == 1.0


def test_other_verbs_refuse() -> None:
    with pytest.raises(UnsupportedProtocolError, match="hushuffle assess"):
        study(PLANNED).read(Path())


@pytest.mark.parametrize(
    "case",
    [
        (
            PLANNED + RANDOMIZER.replace("p = 0.1\n", "") + REST,
            "randomizer.p: must be given, or else targets.epsilon, got neither. "
            "With targets.epsilon, assess uses the smallest p that meets it.",
        ),
        (
            PLANNED + RANDOMIZER.replace("0.1", "0.5") + REST.replace("uniform", "none"),
            "randomizer.p: must be less than 0.5, got 0.5.",
            'shuffler.kind: must be "uniform" with flips, got "none". '
            "The estimates use counts of columns, which have no order.",
        ),
        (
            PLANNED + '[randomizer]\nkind = "randomized-response"\nepsilon = 1.0\n' + REST,
            'randomizer.kind: must be "bit-flipping" in a reach study, got "randomized-response". '
            'Or protect bits without flips by dummies: [shuffler] kind = "augmented".',
        ),
        (
            "population = { n = 10, k = 4 }\n" + RANDOMIZER + REST,
            'population: must have publishers or audiences for kind = "bit-flipping", got neither. '
            "For people with one answer each, use randomized-response or local-hashing.",
        ),
        (
            'adversaries = [{ kind = "strong" }, { kind = "linker" }]\n' + PLANNED + RANDOMIZER + REST,
            'adversaries[1].kind: must be "strong" in a reach study, got "linker". '
            "A column has no sender and no single answer. Use strong, which is the worst case.",
        ),
        (
            PLANNED.replace("web = 200", "web = 1000") + RANDOMIZER + REST,
            "population.audiences.web: must be fewer than all 1,000 people, got 1000.",
        ),
        (
            POPULATION.replace('key_file = "reach.key"\n', "") + RANDOMIZER + REST,
            "population: must have either key_file or key_variable, got neither. "
            "The key is secret: store it in a separate file or in the environment, never in this file.",
        ),
        (
            POPULATION + 'key_variable = "X"\nhashes = 0\nfoo = 3\n' + RANDOMIZER + REST,
            "population.hashes: must be greater than or equal to 1, got 0.",
            "population.foo: is not a key here, got 3. Allowed keys: above, allow_categories_from_data, "
            "audiences, "
            "bad_rows, bad_rows_at_most, "
            "bins, bits, casefold, categories, categories_file, column, data, encoding, hashes, high, k, "
            "key_file, key_variable, kind, levels, low, missing, n, otherwise, people, person, publishers, "
            "reports_per_person, separator, trim, views.",
            "population: must have either key_file or key_variable, got both. "
            "The key is secret: store it in a separate file or in the environment, never in this file.",
        ),
        (
            PLANNED + 'publishers = { tv = "tv.csv" }\n' + RANDOMIZER + REST,
            "population.column: must be given, got nothing.",
            "population.people: is not a key here, got 1000. This key needs audiences.",
            "population.audiences: is not a key here, got a table. This key needs audiences.",
            "population: must have either key_file or key_variable, got neither. "
            "The key is secret: store it in a separate file or in the environment, never in this file.",
        ),
        (
            PLANNED.replace("{ tv = 300, web = 200 }", '{ tv = "many", web = 0 }') + RANDOMIZER + REST,
            'population.audiences.tv: must be an integer, got "many".',
            "population.audiences.web: must be greater than or equal to 1, got 0.",
        ),
        (
            PLANNED.replace("{ tv = 300, web = 200 }", "3") + "randomizer = 3\nadversaries = [3]\n" + REST,
            "population.audiences: must be a table, got 3.",
            "randomizer: must be a table, got 3.",
            "adversaries[0]: must be a table, got 3.",
        ),
    ],
)
def test_what_does_not_go_together(case: tuple[str, ...]) -> None:
    text, *expected = case
    if "randomizer = 3" in text:
        text = "randomizer = 3\nadversaries = [3]\n" + text.replace("randomizer = 3\nadversaries = [3]\n", "")
    assert problems(text) == expected


def test_how_many_publishers() -> None:
    many = ", ".join(f'p{i} = "{i}.csv"' for i in range(11))
    for publishers, key in (("{}", "population.publishers: "), (f"{{ {many} }}", "population: must have at most 10 ")):
        text = POPULATION.replace('{ tv = "tv.csv", web = "web.parquet" }', publishers)
        (problem,) = problems(text + RANDOMIZER + REST)
        assert problem.startswith(key)
    assert math.isfinite(parse(POPULATION + RANDOMIZER + REST).targets.delta)


def many(views: str, *, publishers: int = 12) -> str:
    sizes = ", ".join(f"a{place} = {20 * place + 20}" for place in range(publishers))
    population = PLANNED.replace("{ tv = 300, web = 200 }", f"{{ {sizes} }}")
    return f"{population}\nviews = [{views}]\n{DUMMIES}"


def test_views_of_columns() -> None:
    own = 'each = { kind = "discrete-laplace", center = 90, scale = 3.0 }'
    empty = own.replace("each", "empty")
    views = (
        '{ shows = "union" }, { shows = "union", sets_of = 2, publishers = ["a3", "a1", "a0"] }, '
        f'{{ shows = "patterns", publishers = ["a11", "a0"], {own}, {empty} }}, {{ shows = "contacts", most = 4 }}'
    )
    text = many(views)
    specification = parse(text)
    assert parse(specification.effective()) == specification
    population = specification.population
    assert isinstance(population, ReachPopulation)
    default = hs.DummyLaw.discrete_gaussian(center=60, sigma=6.0)
    shown = population.shown(default)
    assert (shown.publishers, shown.columns, shown.hashes) == (12, 1000, 1)
    assert [view.publishers for view in shown.views] == [
        tuple(range(12)),
        (3, 1),
        (3, 0),
        (1, 0),
        (11, 0),
        tuple(range(12)),
    ]
    assert [view.shows for view in shown.views] == [*["union"] * 4, "patterns", "contacts"]
    assert [view.each == default for view in shown.views] == [True, True, True, True, False, True]
    assert [view.empty is None for view in shown.views] == [True, True, True, True, False, True]
    assert sum(view.cells for view in shown.views) == 4 + 4 + 5  # not 2**12


@pytest.mark.parametrize(
    ("views", "words"),
    [
        (
            '{ shows = "union", publishers = ["a0", "b"] }',
            "views[0].publishers: must be publishers of this study, got b",
        ),
        ('{ shows = "union", publishers = ["a0", "a0"] }', "views[0].publishers: must be different publishers"),
        ('{ shows = "union", sets_of = 13 }', "views[0].sets_of: must be at most 12"),
        ('{ shows = "patterns" }', "views[0].publishers: must be at most 10 publishers"),
        ('{ shows = "union", empty = { kind = "geometric", mean = 3.0 } }', "views[0].empty: is allowed only"),
        ('{ shows = "union", single = { kind = "geometric", mean = 3.0 } }', "views[0].single: is allowed only"),
        ('{ shows = "contacts" }', "views[0].most: must be given, got nothing"),
        ('{ shows = "union", most = 3 }', 'views[0].most: is allowed only with shows = "contacts", got 3'),
        (
            '{ shows = "contacts", most = 3 }, { shows = "contacts", most = 2 }',
            "must have at most one view of contacts",
        ),
        ('{ shows = "union", each = { kind = "geometric", mean = 3.0 } }', "must be left out of at least one view"),
    ],
)
def test_views_that_do_not_fit(views: str, words: str) -> None:
    (problem,) = problems(many(views))
    assert problem.startswith("population.")
    assert words in problem


def test_views_need_a_shuffler_that_adds_dummies_and_contacts_need_more_than_bits() -> None:
    flipped = PLANNED + 'views = [{ shows = "union" }]\n' + RANDOMIZER + REST
    assert 'shuffler.kind: must be "augmented" with population.views, got "uniform"' in problems(flipped)[0]
    read = POPULATION + 'views = [{ shows = "contacts", most = 2 }]\n' + DUMMIES
    assert "views[0].shows: must be" in problems(read)[0]


def test_rounded_audiences_of_twelve_publishers_keep_their_sizes() -> None:
    sizes = [20 * place + 20 for place in range(12)]
    people = assumed_people(1000, sizes)
    sets = np.arange(people.size)
    for place, size in enumerate(sizes):
        assert int(people[sets >> place & 1 == 1].sum()) == pytest.approx(size, abs=12)
