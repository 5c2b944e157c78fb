"""From targets to a sum: what is proposed meets them when it is assessed, and a little less does not."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

import hushuffle as hs
from hushuffle.assessment.deployment import assess
from hushuffle.assessment.targets import Choice
from hushuffle.assessment.total import Total
from hushuffle.cli import main
from hushuffle.cli.calibrate import _verdict_on_sum
from hushuffle.cli.console import Exit
from hushuffle.errors import SpecificationError
from hushuffle.specification.sums import SumSpecification, parse_sum

pytestmark = pytest.mark.usefixtures("no_charts")


def written(targets: str, *, n: int = 10_000, honest: float = 1.0, delta: float = 1e-9) -> SumSpecification:
    return parse_sum(f"""
        population = {{ n = {n}, kind = "number", low = 0, high = 100, levels = 11 }}
        sum = {{ epsilon = 1.0, delta = {delta}, honest = {honest} }}
        targets = {{ {targets} }}
    """)


def calibrate_sum(specification: SumSpecification) -> Choice:
    return Total(specification, Path()).calibrate()


def assessed(choice: Choice) -> dict[str, bool | None]:
    """Every target of what is proposed, as the report about the file says."""
    report = assess(parse_sum(choice.specification or ""))
    assert report.targets == choice.targets
    return {target.key: target.met for target in report.targets}


@pytest.mark.parametrize("n", [50, 3_000, 1_000_000])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_the_noise_of_the_privacy_target_is_as_accurate_as_one_party_but_for_a_hundredth(
    n: int, epsilon: float
) -> None:
    choice = calibrate_sum(written(f"epsilon = {epsilon}, delta = 1e-7", n=n, honest=0.9))
    assert choice.private is not None
    assert assessed(choice)["epsilon"] is True
    protocol = choice.private.protocol
    assert (protocol.epsilon, protocol.delta) == (epsilon, 1e-7)
    assert choice.private.central.upper <= epsilon
    assert choice.private.central == hs.dp.epsilon(protocol, delta=1e-7)
    laplace = 100 / n / epsilon * math.sqrt(2 * n / protocol.needed)
    assert choice.private.standard_error <= 1.01 * laplace or protocol.levels == 16_384  # no grid has more
    if protocol.levels not in (2, 16_384):
        assert protocol.levels is not None
        fewer = replace(protocol, levels=protocol.levels - 1)
        assert fewer.standard_error() / n > 1.01 * laplace * (1 - 1e-9)


@pytest.mark.parametrize("wanted", [0.5, 0.03])
def test_the_smallest_epsilon_for_an_accuracy_meets_it_and_less_does_not(wanted: float) -> None:
    choice = calibrate_sum(written(f"standard_error = {wanted}", honest=0.8))
    assert choice.private is None
    assert choice.accurate is not None
    assert choice.proposed is choice.accurate
    assert assessed(choice) == {"delta": True, "standard_error": True}
    assert choice.met
    protocol = choice.accurate.protocol
    less = replace(protocol, epsilon=protocol.epsilon * 0.998)
    assert choice.accurate.standard_error <= wanted < less.standard_error() / less.n
    assert float(f"{protocol.epsilon:.4g}") == protocol.epsilon


def test_people_are_as_many_as_meet_both_targets_and_fewer_do_not() -> None:
    choice = calibrate_sum(written("epsilon = 0.5, standard_error = 0.001"))
    assert choice.people is not None
    assert not choice.met
    enough = calibrate_sum(written("epsilon = 0.5, standard_error = 0.001", n=choice.people))
    assert enough.met
    assert enough.people is None
    assert not calibrate_sum(written("epsilon = 0.5, standard_error = 0.001", n=int(choice.people * 0.999))).met
    assert calibrate_sum(written("epsilon = 0.5, standard_error = 1e-9")).people is None


def test_fewer_levels_are_taken_where_bits_are_short() -> None:
    free = calibrate_sum(written("epsilon = 1.0, standard_error = 0.0145"))
    short = calibrate_sum(written("epsilon = 1.0, standard_error = 0.0145, bits = 140"))
    assert free.private is not None
    assert short.private is not None
    assert free.private.protocol.bits_per_person > 140 >= short.private.protocol.bits_per_person
    assert free.private.protocol.levels is not None
    assert short.private.protocol.levels is not None
    assert short.private.protocol.levels < free.private.protocol.levels
    more = replace(short.private.protocol, levels=short.private.protocol.levels + 1)
    assert more.bits_per_person > 140
    assert free.accurate is not None
    assert short.accurate is not None
    assert short.accurate.standard_error <= 0.0145
    assert short.accurate.protocol.epsilon > free.accurate.protocol.epsilon
    hopeless = calibrate_sum(written("epsilon = 1.0, bits = 10"))
    assert assessed(hopeless)["bits"] is False
    assert calibrate_sum(written("epsilon = 1.0, standard_error = 0.01, bits = 40", n=9)).accurate is None


def test_tables_hold_the_noise_of_a_billion_people_and_of_two_levels() -> None:
    many = calibrate_sum(written("epsilon = 0.1", n=10**9, delta=1e-12))
    assert many.private is not None
    assert many.private.standard_error < 1.2 * math.sqrt(2) * 100 / 0.1 / 10**9
    few = calibrate_sum(written("epsilon = 0.0001"))
    assert few.private is not None
    assert few.private.protocol.levels == 2
    lax = calibrate_sum(written("standard_error = 1e6"))
    assert lax.accurate is not None
    assert lax.accurate.protocol.epsilon == 1e-4


@pytest.mark.parametrize(
    ("targets", "word"),
    [
        ("bits = 100", "targets.epsilon: must be given to calibrate, got nothing"),
        ("standard_error = 1e-9", "targets.standard_error: must be a value that some epsilon up to 40 achieves"),
        ("epsilon = 0.5, delta = 1e-300", "sum.delta: must be larger for this number of people"),
        ("epsilon = 0.5, delta = 2.0", "targets.delta: must be"),
        ("epsilon = 41", "targets.epsilon: must be less than or equal to 40"),
    ],
)
def test_what_cannot_be_met_is_a_problem_of_its_key(targets: str, word: str) -> None:
    with pytest.raises(SpecificationError) as refused:
        calibrate_sum(written(targets))
    assert word in str(refused.value)


def test_the_program_prints_a_file_that_does_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "sum.toml"
    file.write_text(written("epsilon = 0.5, standard_error = 0.03").effective(), encoding="utf-8")
    assert main(["calibrate", str(file), "--strict"]) == Exit.DONE
    said = capsys.readouterr()
    assert said.err == ""
    assert max(len(line) for line in said.out.splitlines()) <= 80
    assert "All targets are met." in said.out
    assert "most accurate within the privacy    0.5000" in said.out
    assert "population.levels = 126, sum.epsilon = 0.5, sum.delta = 1e-09" in " ".join(said.out.split())
    assert "numbers were not read" in " ".join(said.out.split())
    assert main(["calibrate", str(file), "--json"]) == Exit.DONE
    told = json.loads(capsys.readouterr().out)
    proposed = parse_sum(told["specification"]).build(10_000)
    assert told["most_accurate_for_privacy"]["messages"] == proposed.messages
    assert told["most_accurate_for_privacy"]["modulus"] == proposed.modulus
    assert told["most_accurate_for_privacy"]["noise"]["ratio"] == proposed.noise.chance
    assert list(tmp_path.iterdir()) == [file]

    file.write_text(written("standard_error = 0.03").effective(), encoding="utf-8")
    assert main(["calibrate", str(file), "--json"]) == Exit.DONE
    assert json.loads(capsys.readouterr().out)["most_accurate_for_privacy"] is None

    file.write_text(written("epsilon = 0.5, standard_error = 0.001").effective(), encoding="utf-8")
    assert main(["calibrate", str(file), "--strict"]) == Exit.MISSED
    said = capsys.readouterr()
    assert "no settings meet both privacy and accuracy: at least 2" in " ".join(said.out.split())
    assert "as written" in said.out


def test_verdicts_say_what_is_missed() -> None:
    hopeless = calibrate_sum(written("epsilon = 0.5, standard_error = 1e-9"))
    assert _verdict_on_sum(hopeless) == "No epsilon up to 40 meets the accuracy target with 10,000 people."
    bits = calibrate_sum(written("epsilon = 0.5, bits = 10"))
    assert _verdict_on_sum(bits) == "The proposal misses these targets: targets.bits."


def test_rounds_share_the_privacy_that_is_wanted() -> None:
    plain = written("epsilon = 1.0, delta = 1e-8", n=2_000).plain()
    specification = SumSpecification.model_validate({**plain, "rounds": 52})
    choice = calibrate_sum(specification)
    assert choice.private is not None
    assert assessed(choice)["epsilon"] is True
    protocol = choice.private.protocol
    assert protocol.delta == 1e-8 / 52
    assert protocol.epsilon > 1 / 52
    assert choice.private.central.upper <= 1.0
    assert hs.dp.compose([(replace(protocol, epsilon=protocol.epsilon * 1.01), 52)], delta=1e-8).upper > 1.0
    assert float(f"{protocol.epsilon:.4g}") == protocol.epsilon
