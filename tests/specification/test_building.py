from __future__ import annotations

import math
from pathlib import Path

import pytest

import hushuffle as hs
from hushuffle.errors import DataError, SpecificationError
from hushuffle.specification import Specification, build_adversaries, build_protocol, load, parse

EXAMPLES = Path(__file__).parents[2] / "examples"
HEAD = 'targets = { delta = 1e-6 }\npopulation = { n = 100, categories = ["a", "b", "c"] }\n'


def spec(randomizer: str, shuffler: str = "uniform", further: str = "") -> Specification:
    return parse(
        f'{further}{HEAD}randomizer = {{ kind = "randomized-response", {randomizer} }}\n'
        f'shuffler = {{ kind = "{shuffler}" }}\n'
    )


def test_protocols() -> None:
    built = build_protocol(spec("epsilon = 2.0"), n=7, k=3)
    assert built == hs.Protocol(randomizer=hs.RandomizedResponse(k=3, epsilon=2.0), shuffler=hs.UniformShuffle(), n=7)
    local = build_protocol(spec('epsilon = "inf"', "none"), n=7, k=3)
    assert (local.randomizer.local_epsilon, local.shuffler) == (math.inf, hs.NoShuffle())
    truthful = build_protocol(spec("truth_probability = 0.8"), n=7, k=2)
    assert truthful.randomizer == hs.RandomizedResponse.from_truth_probability(k=2, p=0.8)


def test_scramblers() -> None:
    text = f'{HEAD}randomizer = {{ kind = "randomized-response", epsilon = 1 }}\n'
    built = build_protocol(parse(text + 'shuffler = { kind = "scrambler", dummies = 4 }\n'), n=7, k=3)
    assert built.shuffler == hs.Scrambler(dummies=4)


def test_local_hashing() -> None:
    def built(keys: str) -> hs.Protocol:
        text = f'{HEAD}randomizer = {{ kind = "local-hashing", {keys} }}\nshuffler = {{ kind = "uniform" }}\n'
        return build_protocol(parse(text), n=7, k=3)

    assert built("epsilon = 3").randomizer == hs.LocalHashing(k=3, g=16, epsilon=3.0)
    assert built("epsilon = 1, g = 5").randomizer == hs.LocalHashing(k=3, g=5, epsilon=1.0)
    assert built('epsilon = "inf", g = 2').randomizer == hs.LocalHashing(k=3, g=2, epsilon=math.inf)


def test_what_fits_no_longer_when_the_data_are_known() -> None:
    further = 'adversaries = [{ kind = "informed", m = 50 }]\n'
    with pytest.raises(SpecificationError, match="for n = 50 people and k = 2 categories: 2 problems") as caught:
        build_protocol(spec("truth_probability = 0.4", further=further), n=50, k=2)
    assert [problem.key for problem in caught.value.problems] == ["randomizer.truth_probability", "adversaries[0].m"]


def test_adversaries() -> None:
    kinds = '{ kind = "strong" }, { kind = "informed", m = 3 }, { kind = "uninformed" }'
    built = build_adversaries(spec("epsilon = 1", further=f"adversaries = [{kinds}]\n"))
    assert built.guessers == (hs.Strong(), hs.Informed(m=3), hs.Uninformed())
    assert not built.linker
    assert build_adversaries(spec("epsilon = 1")).linker


def test_people_without_data() -> None:
    people = spec("epsilon = 1").population.read(Path("nowhere"))
    assert (people.n, people.k, people.values, people.population.counts) == (100, 3, None, None)
    assert people.population.labels == ("a", "b", "c")
    counted = parse(spec("epsilon = 1").effective().replace('categories = [\n    "a",\n    "b",\n    "c",\n]', "k = 5"))
    assert counted.population.read(Path()).population.labels == ("0", "1", "2", "3", "4")


def test_people_in_data(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("x\n3\n8\n\n", encoding="utf-8")
    text = """
        population = { data = "people.csv", column = "x", categories = "from-data", missing = "?" }
        randomizer = { kind = "randomized-response", epsilon = 1.0 }
        shuffler = { kind = "uniform" }
        targets = { delta = 1e-6 }
    """
    allowed = parse(text.replace('missing = "?"', 'missing = "?", allow_categories_from_data = true'))
    people = allowed.population.read(tmp_path)
    assert people.population.labels == ("3", "8", "?")
    assert people.values is not None
    assert people.values.tolist() == [0, 1, 2]
    assert [warned.key for warned in people.warnings] == ["categories-from-data"]
    with pytest.raises(DataError, match=r"people\.csv does not exist"):
        allowed.population.read(tmp_path / "elsewhere")


@pytest.mark.parametrize(
    ("name", "n", "counts"),
    [
        ("affairs", 6366, (4313, 2053)),
        ("party", 944, (200, 180, 108, 37, 94, 150, 175)),
        ("no-data", 33_000, None),
        ("hashing", 1_000_000, None),
    ],
)
def test_the_examples(name: str, n: int, counts: tuple[int, ...] | None) -> None:
    example = load(EXAMPLES / f"{name}.toml")
    people = example.population.read(EXAMPLES)
    assert (people.n, people.population.counts) == (n, counts)
    assert build_protocol(example, people.n, people.k).n == n
    assert build_adversaries(example).linker


def test_the_examples_reach_their_targets() -> None:
    from hushuffle.estimation import predicted_standard_error  # noqa: PLC0415

    for name in ("affairs", "party", "no-data", "hashing"):
        example = load(EXAMPLES / f"{name}.toml")
        people = example.population.read(EXAMPLES)
        protocol = build_protocol(example, people.n, people.k)
        target = example.targets.standard_error
        assert target is not None
        assert float(predicted_standard_error(protocol, frequency=1.0)) <= target


DRAWN = {
    '{ kind = "binomial", trials = 9, p = 0.5 }': hs.DummyLaw.binomial(trials=9, p=0.5),
    '{ kind = "geometric", mean = 2 }': hs.DummyLaw.geometric(mean=2.0),
    '{ kind = "discrete-laplace", center = 5, scale = 1.5 }': hs.DummyLaw.discrete_laplace(center=5, scale=1.5),
    '{ kind = "own", numbers = [0, 9], probabilities = [0.5, 0.5] }': hs.DummyLaw.of({0: 0.5, 9: 0.5}),
}


def scrambled(dummies: str) -> Specification:
    text = f'{HEAD}randomizer = {{ kind = "randomized-response", epsilon = 1 }}\n'
    return parse(f'{text}shuffler = {{ kind = "scrambler", dummies = {dummies} }}\n')


@pytest.mark.parametrize("dummies", DRAWN)
def test_scramblers_with_a_random_number_of_dummies(dummies: str) -> None:
    built = build_protocol(scrambled(dummies), n=7, k=3)
    assert built.shuffler == hs.Scrambler(dummies=DRAWN[dummies])
    assert parse(scrambled(dummies).effective()) == scrambled(dummies)


@pytest.mark.parametrize(
    ("dummies", "said"),
    [
        (
            '{ kind = ["binomial"], trials = 3, p = 0.5 }',
            'shuffler.dummies.kind: must be "binomial", "geometric", "discrete-laplace", '
            '"discrete-gaussian" or "own", got ["binomial"]. '
            'Did you mean "binomial"?',
        ),
        ("-1", "shuffler.dummies: must be greater than or equal to 0, got -1."),
        ('"many"', 'shuffler.dummies: must be an integer, got "many".'),
        (
            '{ kind = "binomal", trials = 3, p = 0.5 }',
            'shuffler.dummies.kind: must be "binomial", "geometric", "discrete-laplace", '
            '"discrete-gaussian" or "own", got "binomal". '
            'Did you mean "binomial"?',
        ),
        (
            "{ trials = 3, p = 0.5 }",
            'shuffler.dummies.kind: must be "binomial", "geometric", "discrete-laplace", '
            '"discrete-gaussian" or "own", got nothing.',
        ),
        ('{ kind = "binomial", trials = 3 }', "shuffler.dummies.p: must be given, got nothing."),
        (
            '{ kind = "geometric", mean = 3, p = 0.5 }',
            'shuffler.dummies.p: is not a key here, got 0.5. This key needs kind = "binomial".',
        ),
        (
            '{ kind = "geometric", mean = 1e8 }',
            "shuffler.dummies: must be a distribution with at most 1,048,576 possible numbers, got a table. Use a "
            "narrower distribution: the number of dummies protects, the variance does not.",
        ),
        (
            '{ kind = "own", numbers = [1, 1], probabilities = [0.5, 0.5] }',
            "shuffler.dummies: must have as many probabilities as different numbers, got a table.",
        ),
        (
            '{ kind = "own", numbers = [1, 2], probabilities = [0.5, 0.25] }',
            "shuffler.dummies: must be in all 1, got a table.",
        ),
    ],
)
def test_what_is_no_number_of_dummies(dummies: str, said: str) -> None:
    with pytest.raises(SpecificationError) as caught:
        scrambled(dummies)
    assert [str(problem) for problem in caught.value.problems] == [said]
