"""Collect the answers of groups of people with different randomizers: one shuffle, one file of reports."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hushuffle.collection.engines.kernel import Kernel
from hushuffle.collection.engines.local import ExternalShuffle
from hushuffle.collection.release import central_of, told
from hushuffle.collection.released import Manifest, write_reports
from hushuffle.collection.request import MANIFEST, REPORTS, Request, refuse_few
from hushuffle.files.private_files import publish, workplace
from hushuffle.mechanisms.mixed_protocol import MixedProtocol
from hushuffle.model import Bound, json_number
from hushuffle.questions import dp
from hushuffle.randomness import secure
from hushuffle.specification.mixed import GroupBatches, MixedSpecification
from hushuffle.specification.population import ONE_ROW, relation


@dataclass(frozen=True, kw_only=True)
class CollectedGroups:
    """The release of groups. The number of `dropped` records, whose value was missing, stays private."""

    protocol: MixedProtocol
    central: Bound
    files: tuple[Path, ...]
    dropped: int


def collect_groups(specification: MixedSpecification, *, out: Path, request: Request) -> CollectedGroups:
    """Randomize each person's value by the randomizer of its group, shuffle all, and write `out`, a new folder.

    Each person's group is a public column. The release has the number of people of each group, but no report's group.
    """
    records = GroupBatches(specification, request.base_folder, sources=request.sources, answers=request.column)
    k = records.answers.k
    kernels = [Kernel(randomizer=each) for _, each in specification.build([1] * len(specification.groups), k).groups]
    layout, rng = kernels[0].layout, secure()
    with workplace(out) as place:
        folder, spill = place / "release", place / "spill"
        folder.mkdir()
        spill.mkdir(mode=0o700)
        shuffle = ExternalShuffle(layout.dtype, spill, rng=rng, memory=request.memory)
        for values, groups in records:
            for group, kernel in enumerate(kernels):
                shuffle.add(kernel.reports(values[groups == group], rng=rng))
        refuse_few(shuffle.size, request.min_batch, specification.targets.people)
        protocol = specification.build(records.people, k)
        central = central_of(specification.shared, protocol, None)
        dummies = protocol.shuffler.dummies
        shuffle.add(kernels[0].dummies(dummies, rng=rng))
        write_reports(folder / REPORTS, told(shuffle.blocks(), shuffle.size, request), layout=layout)
        manifest = _manifest(specification, records, protocol, central)
        (folder / MANIFEST).write_text(manifest.text(), encoding="utf-8")
        publish(folder, out)
    request.tell("done", 1.0)
    files = (out / REPORTS, out / MANIFEST)
    return CollectedGroups(protocol=protocol, central=central, files=files, dropped=records.dropped)


def _manifest(
    specification: MixedSpecification, records: GroupBatches, protocol: MixedProtocol, central: Bound
) -> Manifest:
    """Return the public facts about the collection: the sizes of the groups, and no file or person."""
    answers = records.answers
    categories = {"categories": list(answers.labels)} if answers.labels else {"k": answers.k}
    released = specification.counted(records.people, categories, protocol.n)
    groups = [
        {"name": group.name, "people": people, "local_epsilon": json_number(randomizer.local_epsilon)}
        for group, (people, randomizer) in zip(specification.groups, protocol.groups, strict=True)
    ]
    facts = {
        "deployment": protocol.describe(),
        "local_epsilon": json_number(dp.local_epsilon(protocol).upper),
        "groups": groups,
        "central": {
            "epsilon": central.as_dict(),
            "delta": specification.targets.delta,
            "relation": relation(1),
            "per": "person",
            "assumed": ONE_ROW,
        },
        "coins": "secure",
    }
    text, dummies = released.effective(), protocol.shuffler.dummies
    return Manifest(specification=text, people=protocol.n, dummies=dummies, facts=facts)
