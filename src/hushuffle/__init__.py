"""hushuffle: design, run and audit shuffle-model privacy.

Submodules load when first used, so that importing the package stays fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from hushuffle._version import __version__

if TYPE_CHECKING:
    from hushuffle import plans as plans
    from hushuffle.estimation import estimate as estimate
    from hushuffle.mechanisms.adversaries import Informed as Informed
    from hushuffle.mechanisms.adversaries import Strong as Strong
    from hushuffle.mechanisms.adversaries import Uninformed as Uninformed
    from hushuffle.mechanisms.protocol import Protocol as Protocol
    from hushuffle.mechanisms.randomizers import BitFlipping as BitFlipping
    from hushuffle.mechanisms.randomizers import LocalHashing as LocalHashing
    from hushuffle.mechanisms.randomizers import MatrixRandomizer as MatrixRandomizer
    from hushuffle.mechanisms.randomizers import RandomizedResponse as RandomizedResponse
    from hushuffle.mechanisms.randomizers import TargetSampling as TargetSampling
    from hushuffle.mechanisms.shufflers import MallowsShuffle as MallowsShuffle
    from hushuffle.mechanisms.shufflers import NoShuffle as NoShuffle
    from hushuffle.mechanisms.shufflers import Scrambler as Scrambler
    from hushuffle.mechanisms.shufflers import UniformShuffle as UniformShuffle
    from hushuffle.mechanisms.sketches import BloomEncoder as BloomEncoder
    from hushuffle.mechanisms.sketches import BloomFilter as BloomFilter
    from hushuffle.model import Bound as Bound
    from hushuffle.model import Channel as Channel
    from hushuffle.model import Domain as Domain
    from hushuffle.model import Estimate as Estimate
    from hushuffle.model import Finding as Finding
    from hushuffle.model import Groups as Groups
    from hushuffle.model import Guarantee as Guarantee
    from hushuffle.model import Histogram as Histogram
    from hushuffle.model import Traces as Traces
    from hushuffle.model import Transcript as Transcript
    from hushuffle.questions import bloom as bloom
    from hushuffle.questions import dp as dp
    from hushuffle.questions import order as order
    from hushuffle.questions import pie as pie
    from hushuffle.questions import pse as pse
    from hushuffle.questions import qif as qif
    from hushuffle.questions import traffic as traffic
    from hushuffle.randomness import keyed as keyed
    from hushuffle.randomness import reproducible as reproducible
    from hushuffle.randomness import secure as secure

_WHERE = {
    "BitFlipping": "hushuffle.mechanisms.randomizers",
    "LocalHashing": "hushuffle.mechanisms.randomizers",
    "MatrixRandomizer": "hushuffle.mechanisms.randomizers",
    "Informed": "hushuffle.mechanisms.adversaries",
    "Strong": "hushuffle.mechanisms.adversaries",
    "Uninformed": "hushuffle.mechanisms.adversaries",
    "estimate": "hushuffle.estimation",
    "Bound": "hushuffle.model",
    "Channel": "hushuffle.model",
    "Domain": "hushuffle.model",
    "Estimate": "hushuffle.model",
    "Finding": "hushuffle.model",
    "Groups": "hushuffle.model",
    "Guarantee": "hushuffle.model",
    "Histogram": "hushuffle.model",
    "BloomEncoder": "hushuffle.mechanisms.sketches",
    "BloomFilter": "hushuffle.mechanisms.sketches",
    "MallowsShuffle": "hushuffle.mechanisms.shufflers",
    "NoShuffle": "hushuffle.mechanisms.shufflers",
    "TargetSampling": "hushuffle.mechanisms.randomizers",
    "Traces": "hushuffle.model",
    "Protocol": "hushuffle.mechanisms.protocol",
    "Scrambler": "hushuffle.mechanisms.shufflers",
    "RandomizedResponse": "hushuffle.mechanisms.randomizers",
    "Transcript": "hushuffle.model",
    "UniformShuffle": "hushuffle.mechanisms.shufflers",
    "keyed": "hushuffle.randomness",
    "reproducible": "hushuffle.randomness",
    "secure": "hushuffle.randomness",
}
_ROOMS = {
    "bloom": "hushuffle.questions.bloom",
    "dp": "hushuffle.questions.dp",
    "order": "hushuffle.questions.order",
    "plans": "hushuffle.plans",
    "pie": "hushuffle.questions.pie",
    "pse": "hushuffle.questions.pse",
    "qif": "hushuffle.questions.qif",
    "traffic": "hushuffle.questions.traffic",
}

__all__ = ["__version__", *sorted(_WHERE), *sorted(_ROOMS)]  # noqa: PLE0604 - all of them are strings


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        value = getattr(importlib.import_module(_WHERE[name]), name)
    elif name in _ROOMS:
        value = importlib.import_module(_ROOMS[name])
    else:
        message = f"module 'hushuffle' has no attribute {name!r}"
        raise AttributeError(message)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
