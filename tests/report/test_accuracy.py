from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hushuffle.model import Report, Utility
from hushuffle.report.accuracy import Accuracy, accuracy
from report.assessments import assessment


def read(made: Report, **changes: object) -> Accuracy:
    assert made.utility is not None
    assert made.population is not None
    return accuracy(made.population, replace(made.utility, **changes))  # type: ignore[arg-type]


def test_table_with_data_has_every_column() -> None:
    reading = read(assessment(7))
    headings = [column.heading for column in reading.columns]
    assert headings == ["Value", "True share", "Estimate", "95% interval", "Predicted error", "Measured error", "z"]
    assert all(len(column.cells) == 7 for column in reading.columns)
    assert (reading.rows, reading.more) == (tuple(range(7)), 0)


def test_true_shares_and_estimates_come_from_the_assessment() -> None:
    made = assessment(7)
    assert made.population is not None
    assert made.population.counts is not None
    assert made.utility is not None
    assert made.utility.estimate is not None
    cells = {column.heading: column.cells for column in read(made).columns}
    for value in range(7):
        assert float(cells["True share"][value]) == pytest.approx(made.population.counts[value] / 6366, abs=1e-5)
        assert float(cells["Estimate"][value]) == pytest.approx(made.utility.estimate.frequencies[value], abs=1e-5)


def test_many_values_show_the_most_frequent_and_count_the_rest() -> None:
    made = assessment(200)
    reading = read(made)
    assert made.population is not None
    assert made.population.counts is not None
    shown = [made.population.counts[row] for row in reading.rows]
    assert len(shown) == 30
    assert shown == sorted(made.population.counts, reverse=True)[:30]
    assert (reading.more, reading.order) == (170, "the most frequent ones")


def test_without_counts_the_largest_estimates_are_shown() -> None:
    made = assessment(200)
    assert made.population is not None
    hidden = replace(made, population=replace(made.population, counts=None))
    assert "largest estimates" in read(hidden).order
    assert "largest predicted errors" in read(hidden, estimate=None).order


def test_without_data_one_sentence_says_it_all() -> None:
    reading = read(assessment(200, data=False))
    assert reading.columns == ()
    assert (reading.rows, reading.more) == ((), 0)
    assert reading.sentences == (
        "The predicted standard error of an estimated share, at the worst possible share, is 0.007330.",
    )


def test_a_prediction_that_differs_by_value_is_a_table() -> None:
    reading = read(assessment(3, data=False), predicted=np.array([0.01, 0.02, 0.03]))
    assert [column.heading for column in reading.columns] == ["Value", "Predicted error"]
    assert "0.01000 to 0.03000, depending on the value" in reading.sentences[0]


def test_z_is_read_as_chance_or_as_disagreement() -> None:
    fine, wrong = " ".join(read(assessment(7)).sentences), " ".join(read(assessment(7, wrong=True)).sentences)
    assert "Measured and predicted errors agree." in fine
    assert "Measured and predicted errors differ significantly: do not rely" in wrong
    assert "exceeds 3.2" in fine


def test_the_threshold_grows_with_the_number_of_values() -> None:
    z = np.zeros(200)
    z[4] = -3.5  # beyond chance for one value among 2, not among 200
    assert "errors agree" in " ".join(read(assessment(200), z=z).sentences)
    assert "do not rely" in " ".join(read(assessment(2), z=z[3:5]).sentences)


def test_measured_without_z() -> None:
    reading = read(assessment(2), z=None, measured=np.array([0.01, 0.01]), repetitions=1)
    assert "The measured error (root mean square over 1 run) is 0.01000." in reading.sentences
    assert "z" not in [column.heading for column in reading.columns]


def test_remarks() -> None:
    made = assessment(2)
    assert made.utility is not None
    assert made.utility.estimate is not None
    said = " ".join(read(made).sentences)
    assert "not protected" in said
    assert "largest error of an estimated share" in said
    clean = replace(made.utility.estimate, postprocessing=("significant at 0.05", "simplex projection"))
    assert "(significant at 0.05, then simplex projection)" in " ".join(read(made, estimate=clean).sentences)
    below = replace(made.utility.estimate, frequencies=np.array([-0.01, 1.01]))
    assert "may be below 0" in " ".join(read(made, estimate=below).sentences)


def test_predicted_only_utility_with_data() -> None:
    made = assessment(2)
    assert made.population is not None
    reading = accuracy(made.population, Utility(predicted=np.array([0.01, 0.01])))
    assert [column.heading for column in reading.columns] == ["Value", "True share", "Predicted error"]
