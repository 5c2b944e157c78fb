from __future__ import annotations

import pytest
from pydantic import ValidationError

from hushuffle.errors import SpecificationError
from hushuffle.specification import Specification, build_protocol, parse
from hushuffle.specification.population import CountedPopulation

HEAD = 'shuffler = { kind = "uniform" }\ntargets = { delta = 1e-6 }\n'
DATA = 'population = {{ data = "people.csv", column = "x", {} }}\n'
COUNT = "population = {{ n = 100, {} }}\n"
RANDOMIZER = 'randomizer = {{ kind = "randomized-response", {} }}\n'
PLAIN = RANDOMIZER.format("epsilon = 1.0")


def problems(text: str) -> list[str]:
    try:
        parse(HEAD + text)
    except SpecificationError as error:
        return [str(problem) for problem in error.problems]
    return []


@pytest.mark.parametrize(
    "case",
    [
        (COUNT.format('categories = ["a", 2, true]'),),
        (COUNT.format("k = 2"),),
        (
            COUNT.format('k = 2, categories = ["a", "b"]'),
            "population: must have either k or categories, got both. "
            "Set k, the number of categories, if they have no names.",
        ),
        (
            "population = { n = 100 }\n",
            "population: must have either k or categories, got neither. "
            "Set k, the number of categories, if they have no names.",
        ),
        (COUNT.format("k = 1"), "population.k: must be greater than or equal to 2, got 1."),
        (COUNT.format('categories = ["a", "b", "a", "b"]'), "population.categories: must be distinct, got a, b twice."),
        (
            COUNT.format('categories = ["a"]'),
            "population.categories: must be at least 2, got 1. With one category, all answers are the same.",
        ),
        (DATA.format('categories = { a = "== 1" }, missing = "no answer"'),),
        (DATA.format('categories = { a = "== 1", b = "!= 1" }, missing = "b"'),),
        (
            DATA.format('categories = { a = "== 1" }, missing = "a"'),
            "population.categories: must be at least 2, got 1. With one category, all answers are the same.",
        ),
        (DATA.format('categories = ["1", 1]'), "population.categories: must be distinct, got 1 twice."),
        (DATA.format('categories = "from-data", allow_categories_from_data = true'),),
        (
            DATA.format('categories = "from-data"'),
            "population.categories: must be chosen before the collection, since categories from the data "
            'reveal that records have them, got "from-data". '
            "To allow it nevertheless, set allow_categories_from_data = true.",
        ),
        (DATA.format('categories = ["a", "b"], missing = 3'), "population.missing: must be text, got 3."),
    ],
)
def test_population(case: tuple[str, ...]) -> None:
    population, *expected = case
    assert problems(population + PLAIN) == expected


SAY_NOTHING = "Reports would not depend on the answers."


@pytest.mark.parametrize(
    "case",
    [
        ("truth_probability = 0.26",),
        ("truth_probability = 1",),
        (
            "truth_probability = 0.25",
            f"randomizer.truth_probability: must be more than 1/k = 0.25, got 0.25. {SAY_NOTHING}",
        ),
        ("truth_probability = 1.5", "randomizer.truth_probability: must be less than or equal to 1, got 1.5."),
        ("epsilon = 1e-25", f"randomizer.epsilon: must be larger for k = 4, got 1e-25. {SAY_NOTHING}"),
        (
            "epsilon = 1, truth_probability = 0.5",
            "randomizer: must have either epsilon or truth_probability, got both. Both describe the same setting.",
        ),
    ],
)
def test_randomizer(case: tuple[str, ...]) -> None:
    keys, *expected = case
    assert problems(COUNT.format("k = 4") + RANDOMIZER.format(keys)) == expected


@pytest.mark.parametrize(
    "case",
    [
        ("epsilon = 1",),
        ("epsilon = 0.001",),
        ('epsilon = "inf", g = 7',),
        (
            'epsilon = "inf"',
            'randomizer.g: must be given with epsilon = "inf", got nothing. '
            "Without noise more buckets are more accurate; fewer buckets reveal less or need fewer messages.",
        ),
        ("epsilon = 1e-25", f"randomizer.epsilon: must be larger for g = 2, got 1e-25. {SAY_NOTHING}"),
        ("epsilon = 1e-18, g = 100", f"randomizer.epsilon: must be larger for g = 100, got 1e-18. {SAY_NOTHING}"),
        ("epsilon = 0.5, g = 1", "randomizer.g: must be greater than or equal to 2, got 1."),
        ('epsilon = 0.5, g = "x"', 'randomizer.g: must be an integer, got "x".'),
        ("g = 4", "randomizer.epsilon: must be given, got nothing."),
        (
            "epsilon = 1, truth_probability = 0.5",
            'randomizer.truth_probability: is not a key here, got 0.5. This key needs kind = "randomized-response".',
        ),
    ],
)
def test_local_hashing(case: tuple[str, ...]) -> None:
    keys, *expected = case
    text = f'randomizer = {{ kind = "local-hashing", {keys} }}\n'
    assert problems(COUNT.format("k = 4") + text) == expected


def test_randomizer_of_unknown_strength() -> None:
    assert problems(COUNT.format("k = 4") + 'randomizer.kind = "randomized-response"\n') == [
        "randomizer: must have either epsilon or truth_probability, got neither. For example epsilon = 2.0."
    ]


def test_the_number_of_categories_counts_missing_ones() -> None:
    weak = RANDOMIZER.format("truth_probability = 0.33")
    assert problems(DATA.format('categories = ["a", "b", "c"], missing = "d"') + weak) == []
    assert len(problems(DATA.format('categories = ["a", "b", "c"], missing = "c"') + weak)) == 1
    # Not known before the data are read:
    assert problems(DATA.format('categories = "from-data", allow_categories_from_data = true') + weak) == []


@pytest.mark.parametrize(
    "case",
    [
        ('{ kind = "informed", m = 99 }, { kind = "informed", m = 0 }',),
        (
            '{ kind = "strong" }, { kind = "informed", m = 100 }',
            "adversaries[1].m: must be <= n - 1 = 99, got 100. The adversary can know at most the n - 1 other people.",
        ),
        ('{ kind = "strong" }, { kind = "strong" }', 'adversaries[1]: must be listed once, got "strong" twice.'),
        (
            "",
            "adversaries: must be at least one, got none. "
            "Remove the key for the default: uninformed, strong and linker.",
        ),
    ],
)
def test_adversaries(case: tuple[str, ...]) -> None:
    adversaries, *expected = case
    assert problems(f"adversaries = [{adversaries}]\n" + COUNT.format("k = 4") + PLAIN) == expected


def test_rules_hold_beside_other_problems() -> None:
    text = COUNT.format('k = 4, categories = ["a", "a"]').replace("100", "2.5") + RANDOMIZER.format("epsilon = 99")
    assert [problem.split(":")[0] for problem in problems(text)] == [
        "population.n",
        "population",
        "population.categories",
        "randomizer.epsilon",
    ]


def test_rules_hold_for_specifications_made_in_python() -> None:
    spec = parse(HEAD + COUNT.format("k = 4") + PLAIN)
    further = spec.model_dump() | {"population": CountedPopulation(n=2, k=None)}
    with pytest.raises(ValidationError, match="population: must have either k or categories, got neither"):
        Specification.model_validate(further)
    again = Specification.model_validate(spec.model_dump() | {"population": spec.population})
    assert again == spec


@pytest.mark.parametrize(
    "case",
    [
        ('"subset-selection", epsilon = 1.0',),
        ('"subset-selection", epsilon = 1.0, w = 3',),
        ('"subset-selection", epsilon = 1.0, w = 4', "randomizer.w: must be an integer from 1 to 3, got 4."),
        ('"subset-selection", epsilon = 1.0, w = 0', "randomizer.w: must be greater than or equal to 1, got 0."),
        ('"subset-selection", w = 2', "randomizer.epsilon: must be given, got nothing."),
        (
            '"subset-selection", epsilon = 1.0, g = 2',
            'randomizer.g: is not a key here, got 2. This key needs kind = "local-hashing".',
        ),
        (
            '"subset-selection", epsilon = 1e-20, w = 2',
            "randomizer.epsilon: must be large enough that a report depends on the value at k=4, w=2, "
            "got 1e-20. "
            "With this epsilon, reports would not depend on the values at all.",
        ),
        ('"unary-encoding", epsilon = 1.0',),
        ('"unary-encoding", epsilon = "inf", encoding = "symmetric"',),
        (
            '"unary-encoding", epsilon = 1.0, encoding = "RAPPOR"',
            'randomizer.encoding: must be "symmetric" or "optimized", got "RAPPOR".',
        ),
        (
            '"unary-encoding", epsilon = 1.0, encoding = 3',
            'randomizer.encoding: must be "symmetric" or "optimized", got 3.',
        ),
    ],
)
def test_what_a_mechanism_refuses_names_its_key(case: tuple[str, ...]) -> None:
    settings, *expected = case
    assert problems(COUNT.format("k = 4") + f"randomizer = {{ kind = {settings} }}\n") == expected


def test_what_a_mechanism_chooses_goes_into_its_table() -> None:
    text = COUNT.format("k = 20") + 'randomizer = { kind = "subset-selection", epsilon = "inf" }\n'
    section = parse(HEAD + text.replace('"inf"', "1.0")).randomizer
    assert section.settled(section.build(20)) == {"kind": "subset-selection", "epsilon": 1.0, "w": 5}
    assert parse(HEAD + text).randomizer.settled(section.build(20))["epsilon"] == "inf"


KEPT = "rounds = 12\nmemoised = true\n"


@pytest.mark.parametrize(
    "case",
    [
        (KEPT + "changes = 11\n", "k = 4"),
        ("memoised = false\n", "k = 4"),
        (
            "memoised = true\n",
            "k = 4",
            "memoised: needs rounds = 2 or more, got memoised = true. Set how often the same people are asked, "
            "for example rounds = 12.",
        ),
        (
            "rounds = 3\nchanges = 0\n",
            "k = 4",
            "changes: needs memoised = true, got changes = 0. Remove changes: fresh reports in every round hide "
            "changes, so their epsilon holds for any values.",
        ),
        (
            KEPT + "changes = 12\n",
            "k = 4",
            "changes: must be below rounds = 12, got 12. "
            "Between the rounds, a value can change at most rounds - 1 times.",
        ),
        (
            KEPT,
            "k = 4, reports_per_person = 2",
            "population.reports_per_person: must be 1 with memoised reports, got 2. Two equal answers of a "
            "person would repeat one report.",
        ),
        (
            KEPT,
            'kind = "number", low = 0, high = 10, levels = 4',
            'population.kind: must be left out with memoised reports, got "number". Numbers rarely stay the '
            "same. Use bins instead: then people memoize one report per bin.",
        ),
    ],
)
def test_reports_that_are_kept(case: tuple[str, ...]) -> None:
    keys, population, *expected = case
    assert problems(keys + COUNT.format(population) + PLAIN) == expected


@pytest.mark.parametrize(
    "case",
    [
        ('kind = "uniform"',),
        ('kind = "none"',),
        ('kind = "secure-aggregation"',),
        ('kind = "secure-aggregation", coins = 4', "shuffler.coins: must be 0 with memoised reports, got 4."),
        (
            'kind = "scrambler", dummies = 5',
            'shuffler.kind: must be a shuffler without dummies for memoised reports, got "scrambler".',
        ),
    ],
)
def test_noise_that_is_fresh_in_every_round_does_not_go_with_kept_reports(case: tuple[str, ...]) -> None:
    shuffler, *expected = case
    bits = RANDOMIZER.replace("randomized-response", "unary-encoding").format("epsilon = 1.0")
    head = HEAD.replace('kind = "uniform"', shuffler)
    text = KEPT + head + COUNT.format("k = 4") + bits
    hint = " Fresh randomness averages out over many rounds."
    if not expected:
        assert parse(text).memoised is True
        return
    with pytest.raises(SpecificationError) as error:
        parse(text)
    assert [str(problem) for problem in error.value.problems] == [expected[0] + hint]


@pytest.mark.parametrize(
    ("n", "shuffler", "expected"),
    [
        (10**6, 'kind = "blanket-messages", p = 0.5, trials = 1000', []),
        (
            10**6,
            'kind = "blanket-messages", p = 0.5, trials = 1001',
            ["shuffler.trials: must be at most 1,000: all n = 1,000,000 people together may have at most"],
        ),
        (10**9, 'kind = "blanket-messages", p = 0.5', []),
        (
            10**9 + 1,
            'kind = "blanket-messages", p = 0.5',
            ["shuffler.kind: must be another kind for more than 1,000,000,000"],
        ),
        (
            10**9 + 1,
            'kind = "fakes-per-value", p = 0.01',
            ["shuffler.kind: must be another kind for more than 1,000,000,000"],
        ),
        (10**9, 'kind = "fakes-per-value", p = 0.71', []),
        (10**9, 'kind = "fakes-per-value", p = 0.72', ["shuffler.p: must be at most 0.715: 1,000,000,000 people may"]),
    ],
)
def test_people_send_as_many_messages_as_there_are_laws_for(n: int, shuffler: str, expected: list[str]) -> None:
    text = f"""
        population = {{ n = {n}, k = 3 }}
        randomizer = {{ kind = "randomized-response", epsilon = "inf" }}
        shuffler = {{ {shuffler} }}
        targets = {{ delta = 1e-6 }}
    """
    try:
        build_protocol(parse(text), n=n, k=3)
    except SpecificationError as error:
        (found,) = map(str, error.problems)
        assert expected
        assert found.startswith(expected[0])
    else:
        assert not expected


def test_a_mechanism_that_does_not_go_with_so_many_values_says_how_many_do() -> None:
    text = 'population = { n = 100, k = 1_000_000 }\nrandomizer = { kind = "unary-encoding", epsilon = 1.0 }\n'
    with pytest.raises(
        SpecificationError, match="a mechanism that fits these data: its k must be an integer from 2 to 65536, got"
    ):
        parse(text + HEAD)
