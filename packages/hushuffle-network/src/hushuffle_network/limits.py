"""A phone's limits, set by its owner, and the running total of its privacy loss, written before anything is sent.

This module belongs to the phone's `client.py`. It can be copied with it, and needs only Python and `formats.py`.
"""

from __future__ import annotations

import binascii
import hashlib
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, NoReturn

if __package__:
    from hushuffle_network.formats import PhoneError, refuse
else:
    from formats import PhoneError, refuse  # type: ignore[import-not-found, no-redef]

TOTAL: Final = "total.json"
NONCE: Final = "total.nonce"
"""File beside the total with the random word of the newest total, so that a restored older total is detected."""
_MOST: Final = 1e300
_SLACK: Final = 1 + 1e-9
"""Tolerance for binary sums of decimal numbers: 0.1 + 0.1 + 0.1 exceeds 0.3. Stated figures are rounded up by more."""


class Limits(NamedTuple):
    """The limits of a phone's owner, with epsilon in nats; a limits file is one JSON object with these names.

    `max_epsilon`, `max_delta`: largest epsilon and delta of one task. `budget`: largest sum of the epsilons of all
    tasks; `max_delta` also limits the sum of all deltas. `min_batch`: fewest people in a batch that a scrambler may
    release. `max_epsilon_with`: largest epsilon if a role works against the phone: "issuer" (invents people and
    colludes with all scramblers but one) or "scramblers" (all scramblers collude). `scramblers`: public keys (`key` in
    the document), of which at least one must be in the chain. `collectors`: public keys of results that may publish.
    `issuers`: SHA-256 digests of keys for tokens and tickets; all keys of a task must be listed. None in one of these
    fields allows any key. `recompute`: whether hushuffle recomputes the figures, instead of trusting the document.
    """

    max_epsilon: float = 5.0
    max_delta: float = 1e-3
    budget: float = 10.0
    min_batch: int = 1
    max_epsilon_with: Mapping[str, float] = {}
    scramblers: tuple[str, ...] | None = None
    collectors: tuple[str, ...] | None = None
    issuers: tuple[str, ...] | None = None
    recompute: bool = False


_ONCE: Final = {"number": 1, "rounds": 1}
_ROLES: Final = ("issuer", "scramblers")


def read_limits(data: bytes) -> Limits:
    """Return the limits in a file; raise PhoneError for an invalid name or value.

    >>> read_limits(b'{"max_epsilon": 1, "budget": 3}')[:3]
    (1, 0.001, 3)
    """
    try:
        given = json.loads(data)
        wrong = sorted({*given} - {*Limits._fields}) if isinstance(given, dict) else ["no object"]
    except ValueError:
        given, wrong = {}, ["no JSON"]
    for name in ("scramblers", "collectors", "issuers"):
        if not wrong and given.get(name) is not None:
            keys = given[name]
            valid = isinstance(keys, list) and all(isinstance(one, str) and len(one) == 64 for one in keys)
            wrong = wrong if valid else [name]
            given[name] = tuple(keys) if valid else None
    limits = Limits(**given) if not wrong else Limits()
    amounts = {name: getattr(limits, name) for name in ("max_epsilon", "max_delta", "budget", "min_batch")}
    roles = limits.max_epsilon_with if isinstance(limits.max_epsilon_with, dict) else {"": 0}
    wrong += [name for name, value in amounts.items() if _amount(value) is None]
    wrong += [
        f"max_epsilon_with.{role}" for role, value in roles.items() if role not in _ROLES or _amount(value) is None
    ]
    wrong += [] if isinstance(limits.recompute, bool) else ["recompute"]
    if wrong:
        refuse(f"the file of limits has invalid names or values: {', '.join(wrong)}. Nothing was sent.")
    return limits


def _amount(value: Any) -> float | None:
    """Return a number that is finite and at least 0; None for any other value."""
    valid = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _MOST
    return value if valid else None


def _decline(why: str) -> NoReturn:
    refuse(f"{why}: this phone does not take part in the task, and nothing was sent.")


def check_limits(limits: Limits, document: Mapping[str, Any], data: bytes = b"") -> tuple[float, float]:
    """Return the epsilon and delta that a task states; refuse a task that exceeds the owner's limits.

    The stated figures are correct if one scrambler of the chain is honest: it opens messages only after it has computed
    the same figures from the plan. The phone itself computes the privacy loss if all scramblers collude.
    `data`: the bytes of the document, needed for `recompute`.
    """
    figures = document.get("figures") or {}
    epsilon, delta = (_amount(figures.get(name)) for name in ("epsilon", "delta"))
    if epsilon is None or delta is None or delta >= 1:
        _decline("the task states no valid epsilon and delta")
    words = f"epsilon is up to {epsilon:g} at delta = {delta:g}"
    if epsilon > limits.max_epsilon:
        _decline(f"{words}, above max_epsilon = {limits.max_epsilon:g}")
    if delta > limits.max_delta:
        _decline(f"{words}, above max_delta = {limits.max_delta:g}")
    for role, most in limits.max_epsilon_with.items():
        loss = _amount(figures.get("issuer") if role == "issuer" else local_epsilon(document))
        if loss is None or loss > most * _SLACK:
            what = "not bounded" if loss is None else f"up to {loss:g}"
            _decline(f"with the {role} colluding, epsilon is {what}, above max_epsilon_with.{role} = {most:g}")
    _check_others(limits, document)
    if limits.recompute:
        _recompute(data)
    return epsilon, delta


def _check_others(limits: Limits, document: Mapping[str, Any]) -> None:
    """Refuse a task whose batches are too small, or whose services the owner does not trust."""
    for step in document["steps"]:
        if not step["min_batch"] >= limits.min_batch:  # also true if min_batch is not a number
            _decline(f"a batch may have {step['min_batch']} people, but min_batch is {limits.min_batch}")
    chain = {one["key"] for one in document["chain"]}
    if limits.scramblers is not None and not chain & {*limits.scramblers}:
        _decline("no scrambler of the task is in the limit `scramblers`")
    if limits.collectors is not None and document["result"]["key"] not in limits.collectors:
        _decline("the result of the task is not in the limit `collectors`")
    if limits.issuers is not None:
        keys = [binascii.a2b_base64(step[name]) for step in document["steps"] for name in ("token_key", "ticket_key")]
        if not {hashlib.sha256(key).hexdigest() for key in keys} <= {*limits.issuers}:
            _decline("the task has keys for tokens or tickets that are not in the limit `issuers`")


def local_epsilon(document: Mapping[str, Any]) -> float:
    """Return the pure epsilon of one person, in nats, if all scramblers collude and see the targets of messages.

    >>> step = {"sigma": 0.5, "convention": "uniform", "targets": [{}] * 4}
    >>> round(local_epsilon({"per_person": "one", "steps": [step]}), 4)  # ln(5)
    1.6094
    """
    losses = [0.0]
    for step in document["steps"]:
        count, sigma = len(step["targets"]), step["sigma"]
        # The distribution of `choices.choose`: the probabilities of the own target and of each other target.
        own, other = 1 - sigma + sigma / count, sigma / count
        if count == 1:
            continue  # there is no other target
        if step["convention"] == "exclusive":
            own = max(1 - sigma, 1 / count)
            other = (1 - own) / (count - 1)
        losses.append(math.log(own / other) if other > 0 else math.inf)
    rounds = document.get("round", _ONCE)["rounds"]
    whole: float = (max(losses) if document["per_person"] == "one" else sum(losses)) * rounds
    return whole


def _recompute(data: bytes) -> None:
    try:
        from hushuffle.errors import HushuffleError  # noqa: PLC0415 - where the owner asks for it
        from hushuffle_network.promise import check_task  # noqa: PLC0415
        from hushuffle_network.task import parse_task  # noqa: PLC0415
    except ImportError:
        _decline("the limit `recompute` needs hushuffle, which is not installed")
    try:
        check_task(parse_task(data))
    except HushuffleError as error:
        raise PhoneError(str(error)) from None


def _fixed(document: Mapping[str, Any]) -> str:
    """Return a digest of the fields that all iterations of a run share; an empty text for a task without iterations."""
    about = document.get("round")
    if about is None:
        return ""
    (step,) = document["steps"]
    keys = [step.get("token_key"), step.get("ticket_key")]
    if not 0 < about["number"] <= about["rounds"] == len(about["keys"]) or about["keys"][about["number"] - 1] != keys:
        _decline("the run of the task has no keys for this iteration")
    same = {name: value for name, value in document.items() if name not in ("number", "start")}
    same["steps"] = {name: value for name, value in step.items() if name not in ("name", "token_key", "ticket_key")}
    same["round"] = {name: about.get(name) for name in ("rounds", "scaled", "norm", "radius", "keys")}
    return hashlib.sha256(json.dumps(same, sort_keys=True).encode()).hexdigest()


def follows(document: Mapping[str, Any], former: Mapping[str, Any], former_id: str) -> bool:
    """Return whether a document is the next iteration after `former`, with only the permitted differences."""
    about, before = document.get("round"), former.get("round")
    if about is None or before is None:
        return False
    same = (about.get("former"), about.get("run")) == (former_id, before.get("run", former_id))
    return same and about["number"] == before["number"] + 1 and _fixed(document) == _fixed(former)


# The running total


@contextmanager
def alone(folder: str) -> Iterator[None]:
    """Lock a folder, so that other programs of phones wait before they use it."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103
        number = os.open(f"{folder}/lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        cannot_write(folder)
    try:
        if os.name == "posix":
            import fcntl  # noqa: PLC0415 - does not exist on all systems

            fcntl.flock(number, fcntl.LOCK_EX)
        yield
    finally:
        os.close(number)


def cannot_write(folder: str) -> NoReturn:
    refuse(f"{folder} cannot be written: nothing was sent.")


def write_new(path: str, content: Callable[[os.stat_result], bytes]) -> str:
    """Write a new file beside a path to the disk, readable by the owner only; `content` is given the file's status."""
    new = f"{path}.{os.urandom(8).hex()}.new"
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content(os.fstat(file.fileno())))
        file.flush()
        os.fsync(file.fileno())
    return new


def settle(folder: str) -> None:
    """Wait until the entries of a folder are on the disk."""
    if os.name == "posix":  # elsewhere a folder cannot be opened
        number = os.open(folder, os.O_RDONLY)
        os.fsync(number)
        os.close(number)


class Total:
    """The total privacy loss of all tasks of one state folder; use it only while `alone` holds the folder's lock.

    The file contains its inode and device number, and a random word that a second file also contains; it has no further
    hard link. A file without these properties is a copy or a restored older state, with which two phones could each
    spend the remaining budget: it is refused unless `moved`.
    """

    def __init__(self, folder: str, *, moved: bool = False) -> None:
        self._path, self._folder, self._moved = f"{folder}/{TOTAL}", folder, moved
        self._nonce = ""
        try:
            with open(self._path, "rb") as file:  # noqa: PTH123 - without pathlib the client starts sooner
                about, content = os.fstat(file.fileno()), json.loads(file.read())
            self.runs: dict[str, dict[str, Any]] = content["runs"]
            _ = self.sums()
            same = content["file"] == about.st_ino and content.get("device") == about.st_dev
            self._nonce = str(content.get("nonce", ""))
        except FileNotFoundError:
            if any(len(name) == 69 and name.endswith(".json") for name in os.listdir(folder)):  # noqa: PTH208
                refuse(
                    f"{self._path} is missing, so the total privacy loss is unknown: nothing was sent. "
                    "Restore the file from a backup."
                )
            self.runs = {}
            self.write()
            return
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            refuse(f"{self._path} cannot be read or is damaged: nothing was sent. Restore it from a backup.")
        if about.st_nlink != 1 and not moved:
            refuse(
                f"{self._path} has {about.st_nlink} names (hard links): another phone may share it and continue from "
                "the same total. Nothing was sent. If no other phone uses the folder, pass --moved."
            )
        if not moved and not (same and self._nonce in self._nonces()):
            refuse(
                f"{self._path} is a copy, or was restored: another phone may continue from the same total. Nothing was "
                "sent. If the folder was moved, and the old one is gone, pass --moved."
            )

    def _nonces(self) -> list[str]:
        """Return the random words in the second file; it has two words while a total is being written."""
        try:
            with open(f"{self._folder}/{NONCE}", "rb") as file:  # noqa: PTH123
                return file.read(200).decode("ascii", "replace").split()
        except OSError:
            return []

    def sums(self) -> tuple[float, float]:
        pairs = [(float(one["epsilon"]), float(one["delta"])) for one in self.runs.values()]
        valid = all(isinstance(one["tasks"], list) and isinstance(one["fixed"], str) for one in self.runs.values())
        if not valid or any(_amount(figure) is None for pair in pairs for figure in pair):
            raise ValueError
        return math.fsum(one for one, _ in pairs), math.fsum(one for _, one in pairs)

    def spend(self, task: str, document: Mapping[str, Any], cost: tuple[float, float], limits: Limits) -> None:
        """Record a task's cost before any of its messages is sent; a task that is already recorded costs nothing more.

        The first iteration of a run that this phone answers costs as much as all iterations of the run together. The
        phone answers each iteration once, in order; only centroids, times and token keys may differ between iterations.
        """
        about, fixed = document.get("round", _ONCE), _fixed(document)
        run, number = about.get("run", task), about["number"]
        if run not in self.runs:
            before = self.sums()
            whole = (before[0] + cost[0], before[1] + cost[1])
            if whole[0] > limits.budget * _SLACK or whole[1] > limits.max_delta * _SLACK:
                spent = f"earlier tasks spent epsilon {before[0]:g} and delta {before[1]:g}"
                most = (
                    f"and the limits for all tasks are budget = {limits.budget:g} and max_delta = {limits.max_delta:g}"
                )
                _decline(f"the task would spend epsilon {cost[0]:g} and delta {cost[1]:g}, {spent}, {most}")
            self.runs[run] = {"epsilon": cost[0], "delta": cost[1], "fixed": fixed, "tasks": []}
        tasks: list[str | None] = self.runs[run]["tasks"]
        again = tasks[number - 1 : number] == [task]
        if self.runs[run]["fixed"] != fixed:
            _decline("the task is not an iteration of its run, since more than the centroids has changed")
        if number <= len(tasks) and not again:
            _decline("this phone has answered another document of this iteration, or a later iteration")
        if again and not self._moved:
            return
        if not again:
            if tasks and len(tasks) == number - 1 and tasks[-1] != about["former"]:
                _decline("the task does not follow from the iteration that this phone answered")
            tasks += [None] * (number - 1 - len(tasks)) + [task]
        self.write()

    def check_follows(self, document: Mapping[str, Any]) -> None:
        """Refuse a document that is not the next iteration of a run that this phone has answered."""
        about = document["round"]
        run = self.runs.get(about.get("run"), {"tasks": [], "fixed": None})
        last = run["tasks"][about["number"] - 2 : about["number"] - 1] if about["number"] > 1 else []
        if last != [about["former"]] or run["fixed"] != _fixed(document):
            _decline("the task does not follow from the iteration that this phone answered")

    def holds(self, task: str) -> bool:
        return any(task in one["tasks"] for one in self.runs.values())

    def write(self) -> None:
        """Write the total atomically. Until it is written, the second file has the old and the new random word."""
        nonce = os.urandom(16).hex()
        try:
            self._replace(NONCE, lambda _: f"{self._nonce} {nonce}".strip().encode())
            self._replace(
                TOTAL,
                lambda about: json.dumps(
                    {"file": about.st_ino, "device": about.st_dev, "nonce": nonce, "runs": self.runs}
                ).encode(),
            )
            self._replace(NONCE, lambda _: nonce.encode())
        except OSError:
            cannot_write(self._folder)
        self._nonce = nonce

    def _replace(self, name: str, content: Callable[[os.stat_result], bytes]) -> None:
        path = f"{self._folder}/{name}"
        os.replace(write_new(path, content), path)  # noqa: PTH105
        settle(self._folder)
