from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

import hushuffle as hs

NAMES: Mapping[str, tuple[str, ...] | None] = {
    # Name: the argument names it must take (None: only the name is promised).
    "Bound": ("lower", "upper", "kind", "unit", "sources", "witness", "confidence"),
    "Bounds": ("lower", "upper", "kind", "unit", "sources"),
    "Channel": ("matrix",),
    "ColumnCounts": ("design", "counts"),
    "ColumnView": ("publishers", "each", "shows", "most"),
    "ColumnViews": ("publishers", "columns", "views", "hashes"),
    "Domain": ("labels",),
    "Estimate": None,
    "Scrambler": ("dummies", "cap"),
    "LocalHashing": ("k", "g", "epsilon"),
    "BitFlipping": ("width", "p"),
    "MatrixRandomizer": ("channel",),
    "bloom.epsilon": ("filters", "bits", "p", "delta", "hashes"),
    "bloom.views_delta": ("design", "epsilon"),
    "bloom.views_epsilon": ("design", "delta", "touched"),
    "bloom.estimate_flip_prob": ("filters", "bits", "epsilon", "delta", "hashes", "basis"),
    "design": ("n", "k", "epsilon", "delta", "local_epsilon_max", "loss"),
    "dp.approximate": ("rounds", "delta"),
    "dp.delta": ("protocol", "epsilon", "reports_per_person"),
    "dp.epsilon": ("protocol", "delta", "reports_per_person"),
    "dp.local_epsilon": ("protocol", "reports_per_person"),
    "dp.per_person": ("protocol", "reports"),
    "dp.from_pld": ("pld",),
    "dp.information": ("protocol",),
    "dp.instance": ("protocol", "histogram", "delta"),
    "dp.calibrate": ("protocol", "parameter", "epsilon", "delta", "reports_per_person", "rounds"),
    "dp.compose": ("rounds", "delta"),
    "dp.compose_delta": ("rounds", "epsilon"),
    "dp.parallel": ("protocols", "delta"),
    "dp.to_pld": ("rounds", "interval", "optimistic", "delta"),
    "dp.waves": ("protocol", "waves", "delta", "instantaneous", "changes"),
    "dp.profile": ("rounds", "points", "least"),
    "pie.alpha": ("protocol",),
    "pie.bayes_error": ("protocol", "prior", "largest_prior"),
    "qif.max_load": ("n", "k"),
    "qif.vulnerability": ("protocol", "adversary"),
    "qif.iid_vulnerability": ("protocol", "frequencies"),
    "qif.refines": ("first", "second"),
    "Finding": ("question", "sentence", "bound"),
    "Guarantee": ("epsilon", "delta", "relation"),
    "Histogram": ("counts",),
    "Informed": ("m", "known"),
    "MixedProtocol": ("groups", "shuffler", "group"),
    "MixedProtocol.member": ("group",),
    "NoShuffle": (),
    "Protocol": ("randomizer", "shuffler", "n"),
    "RandomizedResponse": ("k", "epsilon"),
    "RandomizedResponse.from_truth_probability": ("k", "p"),
    "Strong": ("others",),
    "Transcript": None,
    "UniformShuffle": (),
    "Uninformed": (),
    "Bound.as_dict": (),
    "Bound.exact": ("value", "unit"),
    "assess": ("deployment", "base_folder", "progress"),
    "choose": ("wishes", "most_dummies", "most_messages", "most_bits", "honest", "base_folder", "progress"),
    "Report": ("title", "question", "findings", "targets"),
    "Estimate.interval": ("confidence",),
    "Protocol.collect": ("values", "rng"),
    "estimate": ("reports", "protocol"),
    "keyed": ("key", "records", "round"),
    "poisoning_gain": ("protocol", "fakes", "reports_per_person"),
    "reproducible": ("seed",),
    "secure": (),
    "BloomEncoder": ("bits", "key", "hashes"),
    "BloomFilter": ("bits", "hashes"),
    "Groups": ("offsets", "members"),
    "LocalHashing.from_theta": ("k", "g", "theta"),
    "MallowsShuffle": ("reference", "theta", "distance"),
    "DiscreteLaplace": ("levels", "epsilon"),
    "RoundedGaussian": ("levels", "epsilon"),
    "SquareWave": ("bins", "epsilon", "width"),
    "RoundedResponse": ("levels", "epsilon", "low", "high"),
    "NumberGrid": ("low", "high", "levels"),
    "best_levels": ("n", "epsilon", "delta", "low", "high"),
    "estimate_numbers": ("reports", "protocol", "grid"),
    "SplitAndMix": ("low", "high", "n", "epsilon", "delta", "levels", "honest", "coordinates"),
    "estimate_sum": ("messages", "protocol"),
    "mean_error": ("protocol", "grid", "numbers"),
    "Protocol.sums": ("values", "rng"),
    "SecureAggregation": (),
    "SubsetSelection": ("k", "w", "epsilon"),
    "SubsetSelection.best_w": ("k", "epsilon"),
    "HadamardResponse": ("k", "epsilon"),
    "UnaryEncoding": ("k", "epsilon", "encoding"),
    "TargetSampling": ("targets", "sigma", "flood", "convention"),
    "Traces": ("events", "offsets", "k"),
    "order.kendall_sensitivity": ("reference", "groups"),
    "order.reference_order": ("groups", "coordinates", "method"),
    "order.sample_mallows": ("n", "theta", "distance", "rng"),
    "pie.calibrate": ("protocol", "bayes_error"),
    "plans.Plan": ("data", "clusters", "edges"),
    "pse.kl_divergence": ("genuine", "impostor", "k"),
    "traffic.plan_guarantee": ("plan", "delta"),
    "traffic.sampling_epsilon": ("targets", "sigma", "flood"),
    "traffic.scrambler_epsilon": ("targets", "sources", "sigma", "dummies", "cap", "delta", "convention"),
    # Rooms: add a line for every function the design promises.
}


def find(name: str) -> Any:
    found: Any = hs
    for part in name.split("."):
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_promised_name_takes_the_promised_arguments(name: str) -> None:
    promised = NAMES[name]
    assert callable(find(name))
    if promised is not None:
        taken = inspect.signature(find(name)).parameters
        assert set(promised) <= set(taken), f"{name}{inspect.signature(find(name))}"


def test_the_readme_order_of_events() -> None:
    survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=5, epsilon=2.0), shuffler=hs.UniformShuffle(), n=1000)
    reports = survey.collect([value % 5 for value in range(1000)], rng=hs.secure())
    result = hs.estimate(reports, protocol=survey)
    assert result.frequencies.shape == result.standard_errors.shape == (5,)
    assert result.interval(0.95).shape == (5, 2)


def test_everything_announced_is_there() -> None:
    announced: list[str] = vars(hs)["__all__"]
    for name in announced:
        assert getattr(hs, name) is not None
    assert sorted(dir(hs)) == sorted(announced)
    assert set(NAMES) <= {*announced, *(name for name in NAMES if "." in name)}


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match=r"module 'hushuffle' has no attribute 'shuffle_everything'"):
        _ = hs.shuffle_everything  # type: ignore[attr-defined]


def test_a_figure_loads_numpy_and_scipy_only() -> None:
    """What the extra `program` installs is not there for those who use the library alone."""
    names = ["polars", "pydantic", "cyclopts", "rich", "jinja2", "vl_convert", "tomli_w", "cryptography"]
    code = f"""
import sys
sys.modules |= dict.fromkeys({names}, None)  # as if they were not installed
import hushuffle as hs
survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=5, epsilon=2.0), shuffler=hs.UniformShuffle(), n=33_000)
print(hs.dp.epsilon(survey, delta=1e-6), hs.qif.vulnerability(survey), sep="; ")
for use in (lambda: hs.secure().words(1), lambda: hs.assess("town.toml")):
    try:
        use()
    except ImportError as error:
        print(error)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    figures, *missing = run.stdout.splitlines()
    assert figures.startswith("0.05113 to 0.05114 nats (certified bracket); 0.2016 (exact)")
    assert [line.partition(" Install")[2] for line in missing] == [" it with: pip install 'hushuffle[program]'"] * 2


def test_import_loads_nothing_heavy() -> None:
    heavy = ("numpy", "scipy", "polars", "pydantic", "vl_convert", "jinja2", "cryptography", "rich", "dp_accounting")
    code = f"import sys, hushuffle; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def _public() -> Iterator[tuple[str, object]]:
    """Yield every public function and class with its dotted name, and every public method with a body of its own."""
    rooms = {name: getattr(hs, name) for name in dir(hs) if inspect.ismodule(getattr(hs, name))}
    places = [("", hs), *((f"{name}.", room) for name, room in rooms.items())]
    for prefix, room in places:
        for name in getattr(room, "__all__", ()):
            value: Any = getattr(room, name)
            if not (inspect.isfunction(value) or inspect.isclass(value)):
                continue
            yield f"{prefix}{name}", value
            if not inspect.isclass(value):
                continue
            for method, body in vars(value).items():
                plain = getattr(body, "__func__", getattr(body, "fget", body))
                bases = [vars(base).get(method) for base in value.__mro__[1:]]
                if not method.startswith("_") and inspect.isfunction(plain) and not any(bases):
                    yield f"{prefix}{name}.{method}", plain


def test_every_public_name_has_a_docstring() -> None:
    # A dataclass without a docstring gets its signature as one.
    without = [
        name for name, value in _public() if (value.__doc__ or "(").partition("(")[0] in ("", name.split(".")[-1])
    ]
    assert without == []
