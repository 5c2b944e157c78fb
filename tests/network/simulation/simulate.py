"""One seed, one simulation: a random run of the real nodes, random faults, and what must hold after it."""

from __future__ import annotations

import gc
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from network.simulation.checks import check
from network.simulation.clock import Loop
from network.simulation.faults import Faults
from network.simulation.mint import Mint
from network.simulation.network import Network
from network.simulation.plans import scene
from network.simulation.world import World, run


@dataclass(frozen=True, kw_only=True, eq=False)
class Report:
    """What one simulation came to: `problems` are empty if all rules held."""

    seed: int
    faults: list[str]
    problems: list[str]
    world: World

    def __str__(self) -> str:
        lines = [f"seed {self.seed}", *(f"  fault: {words}" for words in self.faults)]
        return "\n".join([*lines, *(f"  problem: {words}" for words in self.problems)])


def simulate(seed: int, *, faults: int | None = None, real: bool = False) -> Report:
    """Run the simulation of a seed.

    Args:
        seed: decides everything.
        faults: how many things go wrong; drawn if None.
        real: whether seals are made with cryptography: slower, and never the same bytes.
    """
    rng = random.Random(f"simulation {seed}")
    made = scene(rng)
    plans = list[Faults]()

    def world_of(loop: Loop, folder: Path) -> World:
        slow = rng.choice((0.002, 0.02, made.document.patience / 100))
        network = Network(loop, made.document.layout, random.Random(f"network {seed}"), slow=slow)
        mint, own = Mint(seed, real=real), random.Random(f"world {seed}")
        return World(scene=made, loop=loop, network=network, mint=mint, folder=folder, random=own)

    def prepare(world: World) -> None:
        plans.append(Faults(world, random.Random(f"faults {seed}")))
        count = rng.choice((0, 1, 1, 2, 2, 3, 4, 6, 9)) if faults is None else faults
        plans[0].plan(count)

    with _no_collector():
        world = run(world_of, seed=seed, prepare=prepare)
        return Report(seed=seed, faults=plans[0].said, problems=check(world), world=world)


@contextmanager
def _no_collector() -> Iterator[None]:
    """Let nothing be finalized at times that depend on what ran before."""
    there = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if there:
            gc.enable()
