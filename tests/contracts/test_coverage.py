from __future__ import annotations

from abc import ABC, abstractmethod

import pytest

from contracts.examples import EXAMPLES, RANDOMIZERS, SHUFFLERS, concrete
from hushuffle.mechanisms.randomizers import Mechanism, RandomizedResponse
from hushuffle.mechanisms.shufflers import Shuffler, UniformShuffle
from plain_protocols import Opaque


@pytest.mark.parametrize("base", [Mechanism, Shuffler])
def test_every_concrete_class_has_examples(base: type[Mechanism | Shuffler]) -> None:
    missing = {found.__name__ for found in concrete(base) if not EXAMPLES.get(found)}
    assert not missing, f"add {sorted(missing)} to tests/contracts/examples.py"


def test_discovery_finds_what_is_there() -> None:
    assert RandomizedResponse in concrete(Mechanism)
    assert UniformShuffle in concrete(Shuffler)
    assert not set(RANDOMIZERS) - concrete(Mechanism)
    assert not set(SHUFFLERS) - concrete(Shuffler)


def test_discovery_leaves_out_abstract_and_foreign_classes() -> None:
    class Half(Shuffler, ABC):
        @abstractmethod
        def more(self) -> None: ...

    class Foreign(UniformShuffle):
        pass

    assert not {Half, Foreign} & concrete(Shuffler)


def test_examples_are_instances_of_their_line() -> None:
    for cls, instances in EXAMPLES.items():
        assert {type(instance) for instance in instances} == {cls}


def test_a_mechanism_without_a_number_of_values_is_refused_when_it_is_defined() -> None:
    with pytest.raises(TypeError, match="Endless needs a field `bins`, its number of values"):
        type("Endless", (Opaque,), {"inputs": Mechanism.inputs, "sized": "bins"})
    counted = type("Counted", (Opaque,), {"inputs": Mechanism.inputs, "sized": "bins", "bins": 3})
    assert counted().inputs == 3
