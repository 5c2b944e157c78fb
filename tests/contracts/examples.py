"""One line for every concrete randomizer and shuffler: instances that the contracts are tested on.

A new class without a line here fails `test_coverage.py`. Choose small domains: laws are enumerated.
"""

from __future__ import annotations

import importlib
import inspect
import math
import pkgutil
from collections.abc import Mapping
from typing import TypeVar

from hushuffle.mechanisms import randomizers, shufflers
from hushuffle.mechanisms.randomizers import (
    BitFlipping,
    DiscreteLaplace,
    HadamardResponse,
    LocalHashing,
    MatrixRandomizer,
    Mechanism,
    RandomizedResponse,
    RoundedGaussian,
    RoundedResponse,
    SquareWave,
    SubsetSelection,
    TargetSampling,
    UnaryEncoding,
)
from hushuffle.mechanisms.shufflers import (
    AugmentedShuffle,
    BlanketMessages,
    DummyLaw,
    FakesPerValue,
    GeometricDummies,
    MallowsShuffle,
    NoShuffle,
    Scrambler,
    SecureAggregation,
    Shuffler,
    UniformShuffle,
)
from hushuffle.model import Channel

RANDOMIZERS: Mapping[type[Mechanism], tuple[Mechanism, ...]] = {
    BitFlipping: (BitFlipping(width=1, p=0.2), BitFlipping(width=2, p=0.45), BitFlipping(width=3, p=0.1)),
    DiscreteLaplace: (DiscreteLaplace(levels=5, epsilon=2.0), DiscreteLaplace(levels=2, epsilon=1.0)),
    HadamardResponse: (
        HadamardResponse(k=2, epsilon=1.0),
        HadamardResponse(k=5, epsilon=2.0),
        HadamardResponse(k=3, epsilon=math.inf),
    ),
    LocalHashing: (
        LocalHashing(k=5, g=4, epsilon=1.0),
        LocalHashing(k=3, g=2, epsilon=2.0),
        LocalHashing(k=2, g=2, epsilon=1.0, family="affine"),
        LocalHashing(k=5, g=3, epsilon=1.0),
        LocalHashing(k=4, g=7, epsilon=0.5),
        LocalHashing(k=3, g=2, epsilon=math.inf),
    ),
    MatrixRandomizer: (
        MatrixRandomizer(channel=Channel(matrix=[[0.5, 0.2, 0.3], [0.1, 0.7, 0.2]])),
        MatrixRandomizer(channel=Channel(matrix=[[0.0, 0.9, 0.0, 0.1], [0.0, 0.25, 0.25, 0.5], [0.0, 0.4, 0.6, 0.0]])),
        MatrixRandomizer(channel=RandomizedResponse(k=4, epsilon=1.5).channel()),
    ),
    RandomizedResponse: (
        RandomizedResponse(k=2, epsilon=1.0),
        RandomizedResponse(k=3, epsilon=0.1),
        RandomizedResponse(k=7, epsilon=2.0),
        RandomizedResponse(k=5, epsilon=4.0),
        RandomizedResponse(k=4, epsilon=math.inf),
        RandomizedResponse.from_truth_probability(k=6, p=0.5),
    ),
    RoundedGaussian: (RoundedGaussian(levels=4, epsilon=2.0), RoundedGaussian(levels=2, epsilon=0.5)),
    RoundedResponse: (
        RoundedResponse(levels=4, epsilon=1.0, low=-1.0, high=2.0),
        RoundedResponse(levels=2, epsilon=math.inf, low=0.0, high=1.0),
    ),
    SquareWave: (
        SquareWave(bins=8, epsilon=1.0),
        SquareWave(bins=5, epsilon=2.0, width=1),
        SquareWave(bins=3, epsilon=0.5, width=0),
        SquareWave(bins=4, epsilon=math.inf, width=1),
    ),
    SubsetSelection: (
        SubsetSelection(k=5, w=2, epsilon=1.0),
        SubsetSelection(k=4, w=1, epsilon=2.0),
        SubsetSelection(k=4, w=3, epsilon=0.5),
        SubsetSelection(k=3, w=2, epsilon=math.inf),
    ),
    TargetSampling: (
        TargetSampling(targets=4, sigma=0.3),
        TargetSampling(targets=3, sigma=0.5, convention="exclusive"),
        TargetSampling(targets=5, sigma=0.2, flood=2),
        TargetSampling(targets=4, sigma=0.0, flood=1),
    ),
    UnaryEncoding: (
        UnaryEncoding(k=2, epsilon=1.0, encoding="symmetric"),
        UnaryEncoding(k=4, epsilon=0.5, encoding="optimized"),
        UnaryEncoding(k=3, epsilon=3.0, encoding="symmetric"),
        UnaryEncoding(k=3, epsilon=math.inf, encoding="optimized"),
    ),
}

SHUFFLERS: Mapping[type[Shuffler], tuple[Shuffler, ...]] = {
    AugmentedShuffle: (
        AugmentedShuffle(each=GeometricDummies(ratio=0.5), kept=0.75).fitted(n=40, values=4),
        AugmentedShuffle(each=DummyLaw.of({0: 0.5, 3: 0.5})).fitted(n=40, values=4),
    ),
    BlanketMessages: (
        BlanketMessages(p=0.25).fitted(n=40, values=4),
        BlanketMessages(p=1.0, trials=2, honest=0.5).fitted(n=40, values=4),
    ),
    FakesPerValue: (FakesPerValue(p=0.25).fitted(n=40, values=4),),
    MallowsShuffle: (
        MallowsShuffle(reference=[2, 0, 3, 1], theta=0.4),
        MallowsShuffle(reference=[1, 0, 2, 3], theta=0.8, distance="hamming"),
        MallowsShuffle(reference=[*range(59, -1, -1)], theta=0.05),
    ),
    NoShuffle: (NoShuffle(),),
    SecureAggregation: (SecureAggregation(),),
    UniformShuffle: (UniformShuffle(),),
    Scrambler: (
        Scrambler(dummies=0),
        Scrambler(dummies=4),
        Scrambler(dummies=2, cap=4),
        Scrambler(dummies=DummyLaw.of({0: 0.5, 3: 0.5})),
    ),
}

EXAMPLES: Mapping[type, tuple[object, ...]] = {**RANDOMIZERS, **SHUFFLERS}

Base = TypeVar("Base")


def concrete(base: type[Base]) -> set[type[Base]]:
    """Return every concrete subclass of `base` that hushuffle defines, all submodules of its room imported."""
    for room in (randomizers, shufflers):
        for module in pkgutil.walk_packages(room.__path__, prefix=f"{room.__name__}."):
            importlib.import_module(module.name)
    found: set[type[Base]] = set()
    waiting = [base]
    while waiting:
        subclass = waiting.pop()
        waiting += subclass.__subclasses__()
        if not inspect.isabstract(subclass) and subclass.__module__.startswith("hushuffle."):
            found.add(subclass)
    return found


def named(examples: Mapping[type, tuple[object, ...]]) -> dict[str, object]:
    """Return every instance under a readable name."""
    return {repr(example): example for group in examples.values() for example in group}
