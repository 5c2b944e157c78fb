"""hushuffle: design, run and audit shuffle-model privacy.

Submodules load when first used, so that importing the package stays fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from hushuffle._version import __version__

if TYPE_CHECKING:
    from hushuffle import plans as plans
    from hushuffle.adversaries import Informed as Informed
    from hushuffle.adversaries import Strong as Strong
    from hushuffle.adversaries import Uninformed as Uninformed
    from hushuffle.analysis import bloom as bloom
    from hushuffle.analysis import dp as dp
    from hushuffle.analysis import order as order
    from hushuffle.analysis import pie as pie
    from hushuffle.analysis import pse as pse
    from hushuffle.analysis import qif as qif
    from hushuffle.analysis import traffic as traffic
    from hushuffle.estimation import estimate as estimate
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
    from hushuffle.protocol import Protocol as Protocol
    from hushuffle.randomizers import BitFlipping as BitFlipping
    from hushuffle.randomizers import LocalHashing as LocalHashing
    from hushuffle.randomizers import MatrixRandomizer as MatrixRandomizer
    from hushuffle.randomizers import RandomizedResponse as RandomizedResponse
    from hushuffle.randomizers import TargetSampling as TargetSampling
    from hushuffle.randomness import keyed as keyed
    from hushuffle.randomness import reproducible as reproducible
    from hushuffle.randomness import secure as secure
    from hushuffle.shufflers import MallowsShuffle as MallowsShuffle
    from hushuffle.shufflers import NoShuffle as NoShuffle
    from hushuffle.shufflers import Scrambler as Scrambler
    from hushuffle.shufflers import UniformShuffle as UniformShuffle
    from hushuffle.sketches import BloomEncoder as BloomEncoder
    from hushuffle.sketches import BloomFilter as BloomFilter

_WHERE = {
    "BitFlipping": "hushuffle.randomizers",
    "LocalHashing": "hushuffle.randomizers",
    "MatrixRandomizer": "hushuffle.randomizers",
    "Informed": "hushuffle.adversaries",
    "Strong": "hushuffle.adversaries",
    "Uninformed": "hushuffle.adversaries",
    "estimate": "hushuffle.estimation",
    "Bound": "hushuffle.model",
    "Channel": "hushuffle.model",
    "Domain": "hushuffle.model",
    "Estimate": "hushuffle.model",
    "Finding": "hushuffle.model",
    "Groups": "hushuffle.model",
    "Guarantee": "hushuffle.model",
    "Histogram": "hushuffle.model",
    "BloomEncoder": "hushuffle.sketches",
    "BloomFilter": "hushuffle.sketches",
    "MallowsShuffle": "hushuffle.shufflers",
    "NoShuffle": "hushuffle.shufflers",
    "TargetSampling": "hushuffle.randomizers",
    "Traces": "hushuffle.model",
    "Protocol": "hushuffle.protocol",
    "Scrambler": "hushuffle.shufflers",
    "RandomizedResponse": "hushuffle.randomizers",
    "Transcript": "hushuffle.model",
    "UniformShuffle": "hushuffle.shufflers",
    "keyed": "hushuffle.randomness",
    "reproducible": "hushuffle.randomness",
    "secure": "hushuffle.randomness",
}
_ROOMS = {
    "bloom": "hushuffle.analysis.bloom",
    "dp": "hushuffle.analysis.dp",
    "order": "hushuffle.analysis.order",
    "plans": "hushuffle.plans",
    "pie": "hushuffle.analysis.pie",
    "pse": "hushuffle.analysis.pse",
    "qif": "hushuffle.analysis.qif",
    "traffic": "hushuffle.analysis.traffic",
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
