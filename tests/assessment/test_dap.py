"""A collection in DAP's terms, against published test vectors of the VDAF draft: names, encodings, sums of shares."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.assessment.dap import Vdaf, refusal, task, vdaf
from hushuffle.estimation import refused
from hushuffle.randomness import reproducible

VECTORS: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent / "vdaf_vectors.json").read_text(encoding="utf-8")
)["vectors"]
FIELD = 2**66 * 4611686018427387897 + 1
"""Field128 of the VDAF draft; its elements are 16 bytes, the smallest first."""


def elements(share: str) -> list[int]:
    whole = bytes.fromhex(share)
    decoded = [int.from_bytes(whole[start : start + 16], "little") for start in range(0, len(whole), 16)]
    assert all(value < FIELD for value in decoded)
    return decoded


def added(shares: Sequence[Sequence[int]]) -> list[int]:
    return [sum(column) % FIELD for column in zip(*shares, strict=True)]


def sums_protocol(name: str, length: int) -> hs.Protocol:
    """Return a collection whose sums such a VDAF carries."""
    device = (
        hs.UnaryEncoding(k=length, epsilon=2.0, encoding="symmetric")
        if "Histogram" not in name
        else hs.RandomizedResponse(k=length, epsilon=2.0)
    )
    return hs.Protocol(randomizer=device, shuffler=hs.SecureAggregation(), n=3)


def report_of(measurement: int | list[int]) -> int:
    """Return the report of ours that a measurement stands for: the number, or bits, the lowest first."""
    return (
        measurement if isinstance(measurement, int) else sum(1 << place for place, bit in enumerate(measurement) if bit)
    )


@pytest.mark.parametrize("name", VECTORS)
def test_a_report_of_ours_is_the_measurement_of_the_vector_and_adds_up_to_its_shares(name: str) -> None:
    vector = VECTORS[name]
    protocol = sums_protocol(name, vector["length"])
    reports = [report_of(one["measurement"]) for one in vector["reports"]]
    for report, one in zip(reports, vector["reports"], strict=True):
        ours = protocol.randomizer.counts(np.array([report]))
        assert ours.counts.tolist() == added([elements(share) for share in one["out_shares"]])
    together = protocol.randomizer.counts(np.array(reports)).counts.tolist()
    assert together == vector["agg_result"] == added([elements(share) for share in vector["agg_shares"]])


@pytest.mark.parametrize("name", [name for name in VECTORS if name != "Prio3MultihotCountVec_2"])  # chunks of one
def test_the_parameters_have_the_vectors_names_and_chunks(name: str) -> None:
    vector = VECTORS[name]
    made = Vdaf(length=vector["length"], bits="SumVec" in name, most_ones=vector.get("max_weight"))
    keys = ("length", "chunk_length", "max_weight", "max_measurement")
    assert made.parameters == {key: vector[key] for key in keys if key in vector}
    assert name.startswith(f"{made.name}_")
    assert vdaf(sums_protocol(name, vector["length"]), most_ones=vector.get("max_weight")).name == made.name


def test_a_task_s_parameters_are_encoded_as_dap_lays_them_out() -> None:
    """uint32 length and chunk_length; uint64 max_measurement between them, or max_weight; the highest byte first."""
    histogram, limited = Vdaf(length=300), Vdaf(length=300, bits=True, most_ones=300)
    assert histogram.configuration == bytes.fromhex("0000012c 00000011")
    assert limited.configuration == bytes.fromhex("0000012c 00000012 000000000000012c")
    assert Vdaf(length=300, bits=True).configuration == bytes.fromhex("0000012c 0000000000000001 00000011")


@pytest.mark.parametrize("name", ["Prio3Histogram", "Prio3SumVec"])
def test_what_two_aggregators_add_up_is_what_estimates_read(name: str) -> None:
    """Noise on the device, measurements, two random shares of each, aggregate shares, their sum."""
    protocol = sums_protocol(name, 6)
    values = [0, 3, 3]
    shares: tuple[list[list[int]], list[list[int]]] = ([], [])
    for report in protocol.randomizer.randomize(values, rng=reproducible(5)).tolist():
        number = int(report)
        measured = (
            [number >> place & 1 for place in range(6)] if "SumVec" in name else [int(number == i) for i in range(6)]
        )
        leader = [secrets.randbelow(FIELD) for _ in measured]
        shares[0].append(leader)
        shares[1].append([(value - part) % FIELD for value, part in zip(measured, leader, strict=True)])
    result = added([added(shares[0]), added(shares[1])])
    assert result == protocol.sums(values, rng=reproducible(5)).counts.tolist()
    assert hs.estimate(hs.Histogram(counts=np.array(result)), protocol=protocol).frequencies.shape == (6,)


def test_what_dap_cannot_carry_is_refused_with_a_reason() -> None:
    device = hs.UnaryEncoding(k=6, epsilon=2.0, encoding="symmetric")
    said = refusal(hs.Protocol(randomizer=device, shuffler=hs.UniformShuffle(), n=9))
    assert said is not None
    assert said[2] == "DAP releases nothing but sums of reports."
    noisy = refusal(hs.Protocol(randomizer=device, shuffler=hs.SecureAggregation(coins=10), n=9))
    assert noisy is not None
    assert noisy[2].startswith("DAP's aggregators add no random bits.")
    assert refusal(sums_protocol("Prio3Histogram", 4)) is None


def test_a_task_says_what_devices_send_and_what_the_certificate_assumes() -> None:
    bits, numbers = (
        task(sums_protocol(name, 5), batch=70, asked={"reports_per_person": 2, "rounds": 3})
        for name in ("Prio3SumVec", "Prio3Histogram")
    )
    assert (bits["vdaf_type"], numbers["vdaf_type"]) == (3, 4)
    assert bits["vdaf"] == {"type": "Prio3SumVec", "shares": 2, "length": 5, "max_measurement": 1, "chunk_length": 2}
    assert bits["min_batch_size"] == 70
    assert "one true or false for each value" in bits["measurement"]
    assert numbers["measurement"] == "the number that the device reports"
    assert (
        "One person gives at most 2 of the reports of a batch, and is in at most 3 of the batches." in bits["assumes"]
    )


def test_a_limit_on_ones_is_a_count_vector_and_says_what_refusals_cost() -> None:
    asked = {"reports_per_person": 1, "rounds": 1}
    limited = task(sums_protocol("Prio3SumVec", 5), batch=70, asked=asked, most_ones=3)
    chance = refused(sums_protocol("Prio3SumVec", 5).randomizer, most_ones=3).upper
    assert (limited["vdaf_type"], limited["vdaf"]["max_weight"]) == (5, 3)
    assert f"with probability {chance:.4g}" in limited["assumes"][-1]


def test_noise_of_aggregators_is_a_setting_of_janus() -> None:
    device, asked = sums_protocol("Prio3SumVec", 5).randomizer, {"reports_per_person": 1, "rounds": 1}
    for scale, budget in ((20.0, [[1], [4]]), (0.1, None), (1e4, [[1], [2000]])):
        noisy = hs.Protocol(randomizer=device, shuffler=hs.SecureAggregation(laplace=scale), n=9)
        settings = task(noisy, batch=9, asked=asked)
        above, below = settings["dp_strategy"]["budget"]["epsilon"]
        number, by = (sum(digit << 32 * place for place, digit in enumerate(digits)) for digits in (above, below))
        assert max(above + below) < 2**32
        assert Fraction(5) / Fraction(number, by) == Fraction(scale)  # sensitivity by epsilon, as Janus computes it
        assert budget in (None, [above, below])
        assert f"noise of scale {scale:g} to each sum" in " ".join(settings["assumes"])
    assert "dp_strategy" not in task(sums_protocol("Prio3SumVec", 5), batch=9, asked=asked)


def test_the_page_names_all_keys_of_a_task() -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/secure-sums.md").read_text(encoding="utf-8")
    made = task(sums_protocol("Prio3Histogram", 5), batch=70, asked={"reports_per_person": 1, "rounds": 1})
    for key in made.keys() - {"standards"}:
        assert f"| `{key}` |" in page
    for standard in made["standards"].values():
        assert standard in page
