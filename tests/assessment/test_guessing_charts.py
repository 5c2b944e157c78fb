from __future__ import annotations

from time import process_time

import pytest

import hushuffle as hs
from hushuffle.assessment.charts import guessing_charts
from hushuffle.assessment.findings import Questions
from hushuffle.mechanisms.shufflers import UniformShuffle
from hushuffle.questions import qif


def survey(k: int, n: int, epsilon: float = 2.0) -> hs.Protocol:
    return hs.Protocol(randomizer=hs.RandomizedResponse(k=k, epsilon=epsilon), shuffler=UniformShuffle(), n=n)


@pytest.mark.parametrize("k", [2, 3, 10])
def test_the_lines_say_what_the_figures_say(k: int) -> None:
    protocol = survey(k, 1000)
    mechanism, knowledge = guessing_charts(Questions(), protocol)
    for chart in (mechanism, knowledge):
        assert chart.here == 1000
        assert len(chart.series) == 3
        for line in chart.series:
            assert len(line.x) == 7
            assert line.x[-1] == 10_000
            assert all(1 / k <= low <= high <= 1 for low, high in zip(line.lower, line.upper, strict=True))
    place = mechanism.series[2].x.index(1000)
    exact = qif.vulnerability(protocol).upper
    for line in (mechanism.series[2], knowledge.series[0]):
        assert line.lower[place] <= exact <= line.upper[place]
    noise, shuffle, both = mechanism.series
    assert set(noise.upper) == {float(protocol.randomizer.channel().matrix[0, 0])}
    assert all(b <= s and b <= n for b, s, n in zip(both.lower, shuffle.upper, noise.upper, strict=True))
    nobody, some, everybody = knowledge.series
    for low, middle, high in zip(nobody.lower, some.upper, everybody.upper, strict=True):
        assert low <= middle <= high * (1 + 1e-9) + 1e-3


def test_without_noise_only_knowledge_matters() -> None:
    (knowledge,) = guessing_charts(Questions(), survey(3, 100, epsilon=float("inf")))
    assert set(knowledge.series[2].upper) == {1.0}


def test_huge_collections_are_off_the_chart() -> None:
    chart = guessing_charts(Questions(), survey(2, 10**9))[0]
    assert chart.here is None
    assert chart.series[0].x[-1] == 10**6


def test_tiny_collections_start_at_two_people() -> None:
    assert guessing_charts(Questions(), survey(3, 2))[0].series[0].x[0] == 2


def test_no_charts_where_there_is_no_answer() -> None:
    named = hs.Protocol(randomizer=hs.RandomizedResponse(k=3, epsilon=1.0), shuffler=hs.NoShuffle(), n=10)
    assert guessing_charts(Questions(), named) == ()
    matrix = hs.MatrixRandomizer(channel=hs.Channel(matrix=[[0.75, 0.25], [0.5, 0.5]]))
    assert guessing_charts(Questions(), hs.Protocol(randomizer=matrix, shuffler=UniformShuffle(), n=10)) == ()


@pytest.mark.parametrize("k", [5, 10])
def test_takes_little_time(k: int) -> None:
    start = process_time()
    guessing_charts(Questions(), survey(k, 100_000))
    assert process_time() - start < 4  # 0.4 to 0.7 s alone


@pytest.mark.parametrize("p", [1.0, 0.5])
@pytest.mark.parametrize("honest", [0.1, 0.0])
def test_few_honest_people_are_all_known_to_who_knows_one_in_ten(p: float, honest: float) -> None:
    truth = hs.RandomizedResponse(k=3, epsilon=float("inf"))
    some = hs.Protocol(randomizer=truth, shuffler=hs.BlanketMessages(p=p, honest=honest), n=1000)
    questions = Questions()
    charts = {chart.key: chart for chart in guessing_charts(questions, some)}
    assert not questions.unanswered
    _, tenth, everybody = charts["guessing-by-knowledge"].series
    assert tenth.upper == everybody.upper
    crowd = hs.Protocol(randomizer=truth, shuffler=hs.BlanketMessages(p=p), n=max(1, round(1000 * honest)))
    asked = [
        qif.vulnerability(crowd, adversary=hs.Strong()),
        *(qif.vulnerability(some, adversary=one) for one in (hs.Strong(), hs.Informed(m=100), hs.Informed(m=999))),
    ]
    assert asked == [asked[0]] * 4
    with pytest.raises(hs.errors.InvalidInputError, match="from 0 to 999"):
        qif.vulnerability(some, adversary=hs.Informed(m=1000))
