from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushuffle.errors import InvalidInputError
from hushuffle.model import Domain


@given(st.lists(st.text("abé'", max_size=3), min_size=2, max_size=6, unique=True), st.data())
def test_decode_undoes_encode(labels: list[str], data: st.DataObject) -> None:
    domain = Domain(labels=tuple(labels))
    values = data.draw(st.lists(st.sampled_from(labels), max_size=8))
    assert domain.decode(domain.encode(values)) == values
    assert domain.k == len(labels)


def test_a_domain_of_numbers() -> None:
    assert Domain.of_size(3).labels == ("0", "1", "2")
    with pytest.raises(InvalidInputError, match=r"`k` must be an integer >= 2, got k=1"):
        Domain.of_size(1)


def test_labels_are_two_or_more_and_distinct() -> None:
    with pytest.raises(InvalidInputError, match=r"`labels` must be at least 2 labels, got labels=1"):
        Domain(labels=("only",))
    with pytest.raises(InvalidInputError, match=r"`labels` must be distinct, got labels=\('a', 'b', 'a'\)"):
        Domain(labels=("a", "b", "a"))


def test_unseen_values_are_counted_not_shown() -> None:
    with pytest.raises(InvalidInputError, match=r"<2 of 3 values unseen>. The labels are no, yes.$") as caught:
        Domain(labels=("no", "yes")).encode(["private answer", "no", "another"])
    assert "private" not in str(caught.value)
    with pytest.raises(InvalidInputError, match=r"The labels are 0, 1, 2, 3, 4, 5, 6, 7, ...\.$"):
        Domain.of_size(9).encode(["9"])


def test_codes_outside_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"`codes` must be integers from 0 to 1, got codes=<1 of 2"):
        Domain(labels=("no", "yes")).decode([0, 2])


@pytest.mark.parametrize("labels", ["ab", ["a", "b"]])
def test_labels_become_a_tuple_or_are_refused(labels: tuple[str, ...]) -> None:
    try:
        domain = Domain(labels=labels)
    except InvalidInputError:
        return
    assert domain.labels == ("a", "b")
