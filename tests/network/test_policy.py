"""What a source demands of a run: every key of its policy, and what all its runs may spend together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256

from hushuffle.errors import DataError
from hushuffle.network.check import Odometer, check_policy, check_promise, spend
from hushuffle.network.nodes.document import RunDocument
from hushuffle.network.nodes.identities import Authority, Identity
from hushuffle.network.nodes.source import Person
from hushuffle.network.specification import Policy
from network.network_tools import KEY, deployed, plan_text

SCRAMBLED = plan_text(people=12, traffic="dummies = 30\nbatch = 6\nmin_batch = 5")
ALONE = plan_text(people=12, traffic="")


def drawn(text: str, seed: int = 1) -> tuple[RunDocument, Mapping[str, Sequence[Person]]]:
    made, loopback = deployed(text, rng_seed=seed)
    loopback.close()
    return made.document, made.people


def identity(name: str, authority: Authority | None = None) -> Identity:
    return (authority or Authority(days=1)).issue(name)


def policy(**values: Any) -> Policy:
    return Policy.model_validate(values)


@pytest.mark.parametrize("text", [SCRAMBLED, ALONE])
def test_a_plan_that_is_good_enough(text: str) -> None:
    document, _ = drawn(text)
    name = next(iter(document.places))
    check_policy(Policy(), check_promise(document), document, identity(name))


@pytest.mark.parametrize(
    ("text", "values", "words"),
    [
        (SCRAMBLED, {"max_epsilon": 0.01}, r"epsilon is up to .* at delta = 1e-06, above max_epsilon = 0\.01"),
        (SCRAMBLED.replace("sigma = 0.3", "sigma = 0.0001"), {}, "above max_epsilon = 5"),
        (SCRAMBLED.replace("delta = 1e-6", "delta = 0.9"), {}, r"delta is 0\.9, above max_delta = 0\.001"),
        (SCRAMBLED, {"max_delta": 0.0}, r"delta is 1e-06, above max_delta = 0"),
        (SCRAMBLED, {"min_batch": 6}, "may be released with 5 sources, min_batch is 6"),
        (ALONE, {"min_batch": 2}, "has no scrambler, min_batch is 2"),
        (SCRAMBLED, {"min_distinct_holders": 7}, "has 6 different holders, min_distinct_holders is 7"),
        (ALONE, {"min_distinct_holders": 2}, "has 1 different holders, min_distinct_holders is 2"),
        (SCRAMBLED, {"authorities": ["0" * 64]}, "the authority with the fingerprint [0-9a-f]{64} is not in"),
    ],
)
def test_a_plan_that_asks_for_more_is_refused(text: str, values: dict[str, Any], words: str) -> None:
    document, _ = drawn(text)
    name = next(iter(document.places))
    with pytest.raises(
        DataError, match=rf"{name} does not take part in the run: .*{words}.*\[policy\].*Nothing was sent"
    ):
        check_policy(policy(**values), check_promise(document), document, identity(name))


def test_authorities_are_known_by_their_fingerprints() -> None:
    document, _ = drawn(SCRAMBLED)
    name, authority, other = next(iter(document.places)), Authority(days=1), Authority(days=1)
    own = x509.load_pem_x509_certificate(authority.certificate.encode()).fingerprint(SHA256()).hex()
    colons = ":".join(own[place : place + 2].upper() for place in range(0, 64, 2))
    good = identity(name, authority)
    check_policy(policy(authorities=[colons]), check_promise(document), document, good)
    both = replace(good, authority=authority.certificate + other.certificate)
    for wrong, words in (
        (both, "is not in the list authorities"),
        (replace(good, authority="none"), "contains no certificate"),
    ):
        with pytest.raises(DataError, match=words):
            check_policy(policy(authorities=[own]), check_promise(document), document, wrong)


def spent(document: RunDocument, entries: Sequence[Person], folder: Path, **values: Any) -> tuple[float, float]:
    spend(policy(**values), check_promise(document), document, entries, key=KEY, state=folder / "state")
    return Odometer.of(KEY).total()


def test_runs_add_up_until_the_budget_is_spent(tmp_path: Path) -> None:
    """With enough runs of the same devices a scrambler knows where each belongs: the budget is what ends them."""
    document, entries = drawn(SCRAMBLED)
    name, each = next(iter(document.places)), check_promise(document).guarantee.upper
    budget = 2.5 * each
    assert spent(document, entries[name], tmp_path, budget=budget) == pytest.approx((each, 1e-6))
    assert spent(document, entries[name], tmp_path, budget=budget) == pytest.approx((each, 1e-6))  # started again
    second, again = drawn(SCRAMBLED, seed=2)
    assert spent(second, again[name], tmp_path, budget=budget) == pytest.approx((2 * each, 2e-6))
    third, more = drawn(SCRAMBLED, seed=3)
    with pytest.raises(DataError, match=r"[Nn]othing was sent"):
        spent(third, more[name], tmp_path, budget=budget)
    assert spent(second, again[name], tmp_path, budget=budget) == pytest.approx((2 * each, 2e-6))


def test_deltas_add_up_too(tmp_path: Path) -> None:
    document, entries = drawn(SCRAMBLED)
    name = next(iter(document.places))
    spent(document, entries[name], tmp_path, max_delta=1.5e-6)
    second, again = drawn(SCRAMBLED, seed=2)
    with pytest.raises(DataError, match=r"[Nn]othing was sent"):
        spent(second, again[name], tmp_path, max_delta=1.5e-6)


def test_another_record_is_not_sent_with_the_coins_of_the_first(tmp_path: Path) -> None:
    document, entries = drawn(SCRAMBLED)
    name = next(iter(document.places))
    spent(document, entries[name], tmp_path)
    (first,) = entries[name]
    with pytest.raises(DataError, match="other records"):
        spent(document, (replace(first, row=first.row + 1),), tmp_path)


def test_a_source_that_has_sent_and_lost_its_record_is_refused(tmp_path: Path) -> None:
    document, entries = drawn(SCRAMBLED)
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "old.messages").touch()
    with pytest.raises(DataError, match="the privacy loss of this key is unknown"):
        spent(document, next(iter(entries.values())), tmp_path)
