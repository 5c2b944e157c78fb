"""What a phone gives at most: its owner's limits, and a running total that is written before anything is sent.

Part of the phone's program, `client.py`, beside which it can be copied: it needs nothing but Python and `formats.py`.
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
    from hushuffle.network.phones.formats import PhoneError
else:
    from formats import PhoneError  # type: ignore[import-not-found, no-redef]

TOTAL: Final = "total.json"
NONCE: Final = "total.nonce"
"""Beside the total: the random word of its newest content, so that an older one that was put back is noticed."""
_MOST: Final = 1e300
_SLACK: Final = 1 + 1e-9
"""Sums of decimal numbers in binary: three times 0.1 is 0.3. Stated figures are rounded up by more than that."""


class Limits(NamedTuple):
    """What the owner of a phone gives at most, epsilon in nats; a file of them is one JSON object with these names.

    `max_epsilon`, `max_delta`: of one task; `budget`: of the sum of epsilons of all tasks, `max_delta` of that of
    deltas; `min_batch`: the fewest people that a scrambler may release. `max_epsilon_with`: the largest epsilon if a
    role works against the phone: "issuer" (makes people up, with all scramblers but one), "scramblers" (all of them).
    `scramblers`: public keys (`key` in the document), of which one at least must be in the chain; `collectors`: of
    results that may publish; `issuers`: SHA-256 digests of the keys for tokens and tickets, of which all must be. None:
    any. `recompute`: figures are computed again, with hushuffle, and not believed.
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
    """Return the limits in a file.

    Raises:
        PhoneError: a name or a value that is none; nothing is sent then.

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
            known = isinstance(keys, list) and all(isinstance(one, str) and len(one) == 64 for one in keys)
            wrong = wrong if known else [name]
            given[name] = tuple(keys) if known else None
    limits = Limits(**given) if not wrong else Limits()
    amounts = {name: getattr(limits, name) for name in ("max_epsilon", "max_delta", "budget", "min_batch")}
    roles = limits.max_epsilon_with if isinstance(limits.max_epsilon_with, dict) else {"": 0}
    wrong += [name for name, value in amounts.items() if _amount(value) is None]
    wrong += [
        f"max_epsilon_with.{role}" for role, value in roles.items() if role not in _ROLES or _amount(value) is None
    ]
    wrong += [] if isinstance(limits.recompute, bool) else ["recompute"]
    if wrong:
        message = (
            f"the file of limits has {', '.join(wrong)}, which is no limit or has no value of one: nothing is sent."
        )
        raise PhoneError(message)
    return limits


def _amount(value: Any) -> float | None:
    """Return a number from 0 on that is finite; None for anything else."""
    known = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _MOST
    return value if known else None


def _decline(why: str) -> NoReturn:
    message = f"{why}: this phone takes no part, nothing is sent."
    raise PhoneError(message)


def check_limits(limits: Limits, document: Mapping[str, Any], data: bytes = b"") -> tuple[float, float]:
    """Return what a task costs, epsilon and delta, as it says; refuse one that asks for more than the owner gives.

    `data`: the document's bytes, for `recompute`.

    What a document says of itself is true where one scrambler of its chain is honest: it opens messages only if it has
    computed the same figures from the plan. What all scramblers learn together is computed here: nobody is believed.
    """
    figures = document.get("figures") or {}
    epsilon, delta = (_amount(figures.get(name)) for name in ("epsilon", "delta"))
    if epsilon is None or delta is None or delta >= 1:
        _decline("the task says no epsilon that it keeps")
    words = f"epsilon is up to {epsilon:g} at delta = {delta:g}"
    if epsilon > limits.max_epsilon:
        _decline(f"{words}, above max_epsilon = {limits.max_epsilon:g}")
    if delta > limits.max_delta:
        _decline(f"{words}, above max_delta = {limits.max_delta:g}")
    for role, most in limits.max_epsilon_with.items():
        found = _amount(figures.get("issuer") if role == "issuer" else local_epsilon(document))
        if found is None or found > most * _SLACK:
            what = "not bounded" if found is None else f"up to {found:g}"
            _decline(f"epsilon is {what} if the {role} work against it, above max_epsilon_with.{role} = {most:g}")
    _check_others(limits, document)
    if limits.recompute:
        _recompute(data)
    return epsilon, delta


def _check_others(limits: Limits, document: Mapping[str, Any]) -> None:
    """Refuse a crowd that is too small, and places that are not trusted."""
    for step in document["steps"]:
        if not step["min_batch"] >= limits.min_batch:  # what is no number is not enough either
            _decline(f"a batch may be of {step['min_batch']} people, min_batch is {limits.min_batch}")
    chain = {one["key"] for one in document["chain"]}
    if limits.scramblers is not None and not chain & {*limits.scramblers}:
        _decline("no scrambler of its chain is one of those that are trusted")
    if limits.collectors is not None and document["result"]["key"] not in limits.collectors:
        _decline("its result is none of the collectors that are trusted")
    if limits.issuers is not None:
        keys = [binascii.a2b_base64(step[name]) for step in document["steps"] for name in ("token_key", "ticket_key")]
        if not {hashlib.sha256(key).hexdigest() for key in keys} <= {*limits.issuers}:
            _decline("its keys for tokens and tickets are not those of the issuers that are trusted")


def local_epsilon(document: Mapping[str, Any]) -> float:
    """Return what all scramblers together learn of one person from where the messages went: epsilon, pure, in nats.

    >>> step = {"sigma": 0.5, "convention": "uniform", "targets": [{}] * 4}
    >>> round(local_epsilon({"per_person": "one", "steps": [step]}), 4)  # ln(5)
    1.6094
    """
    found = [0.0]
    for step in document["steps"]:
        count, sigma = len(step["targets"]), step["sigma"]
        # The law of `choices.choose`: probabilities of the own target and of another one.
        own, other = 1 - sigma + sigma / count, sigma / count
        if count == 1:
            continue  # there is no other
        if step["convention"] == "exclusive":
            own = max(1 - sigma, 1 / count)
            other = (1 - own) / (count - 1)
        found.append(math.log(own / other) if other > 0 else math.inf)
    rounds = document.get("round", _ONCE)["rounds"]
    whole: float = (max(found) if document["per_person"] == "one" else sum(found)) * rounds
    return whole


def _recompute(data: bytes) -> None:
    try:
        from hushuffle.errors import HushuffleError  # noqa: PLC0415 - where the owner asks for it
        from hushuffle.network.phones.promise import check_task  # noqa: PLC0415
        from hushuffle.network.phones.task import parse_task  # noqa: PLC0415
    except ImportError:
        _decline("its figures cannot be computed again where hushuffle is not installed (recompute)")
    try:
        check_task(parse_task(data))
    except HushuffleError as error:
        raise PhoneError(str(error)) from None


def _fixed(document: Mapping[str, Any]) -> str:
    """Return a digest of what all iterations of a run have in common; of a task alone, of all of it."""
    about = document.get("round")
    if about is None:
        return ""
    (step,) = document["steps"]
    keys = [step.get("token_key"), step.get("ticket_key")]
    if not 0 < about["number"] <= about["rounds"] == len(about["keys"]) or about["keys"][about["number"] - 1] != keys:
        _decline("an iteration is not one of those that its run has keys for")
    same = {name: value for name, value in document.items() if name not in ("number", "start")}
    same["steps"] = {name: value for name, value in step.items() if name not in ("name", "token_key", "ticket_key")}
    same["round"] = {name: about.get(name) for name in ("rounds", "scaled", "norm", "radius", "keys")}
    return hashlib.sha256(json.dumps(same, sort_keys=True).encode()).hexdigest()


def follows(document: Mapping[str, Any], former: Mapping[str, Any], former_id: str) -> bool:
    """Say whether a document is of the next iteration of the same run, and nothing but what may differs."""
    about, before = document.get("round"), former.get("round")
    if about is None or before is None:
        return False
    same = (about.get("former"), about.get("run")) == (former_id, before.get("run", former_id))
    return same and about["number"] == before["number"] + 1 and _fixed(document) == _fixed(former)


# The running total


@contextmanager
def alone(folder: str) -> Iterator[None]:
    """Let no other phone's program write into a folder meanwhile: others wait."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103
        number = os.open(f"{folder}/lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        cannot_write(folder)
    try:
        if os.name == "posix":
            import fcntl  # noqa: PLC0415 - is not everywhere

            fcntl.flock(number, fcntl.LOCK_EX)
        yield
    finally:
        os.close(number)


def cannot_write(folder: str) -> NoReturn:
    """Refuse, because nothing can be kept."""
    message = f"{folder} cannot be written: nothing is sent."
    raise PhoneError(message) from None


def write_new(path: str, content: Callable[[os.stat_result], bytes]) -> str:
    """Write a new file beside a path, through to the disk, for the owner alone; return its name.

    `content`: made from what the file system says of the file.
    """
    new = f"{path}.{os.urandom(8).hex()}.new"
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content(os.fstat(file.fileno())))
        file.flush()
        os.fsync(file.fileno())
    return new


def settle(folder: str) -> None:
    """Wait until the disk has the names in a folder."""
    if os.name == "posix":  # elsewhere a folder cannot be opened
        number = os.open(folder, os.O_RDONLY)
        os.fsync(number)
        os.close(number)


class Total:
    """What was spent for the tasks of one state folder; to be used while `alone` in it.

    The file names its own number and its file system, has one name, and a random word that is in a second file too.
    Else it is a copy, or mostly an old state that was put back: two phones that go on from one total would spend twice
    of it. `moved`: take it all the same.

    Raises:
        PhoneError: it is missing beside tasks that were answered, damaged or a copy.
    """

    def __init__(self, folder: str, *, moved: bool = False) -> None:
        self._path, self._folder, self._moved = f"{folder}/{TOTAL}", folder, moved
        self._nonce = ""
        try:
            with open(self._path, "rb") as file:  # noqa: PTH123 - without pathlib the client starts sooner
                about, found = os.fstat(file.fileno()), json.loads(file.read())
            self.runs: dict[str, dict[str, Any]] = found["runs"]
            _ = self.sums()
            same = found["file"] == about.st_ino and found.get("device") == about.st_dev
            self._nonce = str(found.get("nonce", ""))
        except FileNotFoundError:
            if any(len(name) == 69 and name.endswith(".json") for name in os.listdir(folder)):  # noqa: PTH208
                message = f"{self._path} is missing: nobody knows what was spent. Put it back; nothing is sent."
                raise PhoneError(message) from None
            self.runs = {}
            self.write()
            return
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            message = f"{self._path} cannot be read or is damaged: nothing is sent."
            raise PhoneError(message) from None
        if about.st_nlink != 1 and not moved:
            message = (
                f"{self._path} has {about.st_nlink} names (hard links): a copy shares it, and another phone may go on "
                "from the same total. Nothing is sent. If no other folder is used by a phone, say --moved."
            )
            raise PhoneError(message)
        if not moved and not (same and self._nonce in self._nonces()):
            message = (
                f"{self._path} is a copy, or was put back: another phone may go on from the same total. Nothing is "
                "sent. If the folder was moved, and the old one is gone, say --moved."
            )
            raise PhoneError(message)

    def _nonces(self) -> list[str]:
        """Return the words of the second file; while a total is written there are two."""
        try:
            with open(f"{self._folder}/{NONCE}", "rb") as file:  # noqa: PTH123
                return file.read(200).decode("ascii", "replace").split()
        except OSError:
            return []

    def sums(self) -> tuple[float, float]:
        """Return the sums of epsilon and delta."""
        pairs = [(float(one["epsilon"]), float(one["delta"])) for one in self.runs.values()]
        known = all(isinstance(one["tasks"], list) and isinstance(one["fixed"], str) for one in self.runs.values())
        if not known or any(_amount(figure) is None for pair in pairs for figure in pair):
            raise ValueError
        return math.fsum(one for one, _ in pairs), math.fsum(one for _, one in pairs)

    def spend(self, task: str, document: Mapping[str, Any], cost: tuple[float, float], limits: Limits) -> None:
        """Write down what a task spends, before anything of it leaves; one that was written down costs nothing more.

        The iterations of one run cost what all of them cost together, at the first that this phone answers. Each is
        answered once, one after the other; nothing but centroids, times and keys of tokens may differ between them.

        `task`: the document's id, in hexadecimal digits; `cost`: its epsilon and delta.
        """
        about, fixed = document.get("round", _ONCE), _fixed(document)
        run, number = about.get("run", task), about["number"]
        if run not in self.runs:
            before = self.sums()
            whole = (before[0] + cost[0], before[1] + cost[1])
            if whole[0] > limits.budget * _SLACK or whole[1] > limits.max_delta * _SLACK:
                spent = f"spent are epsilon {before[0]:g} and delta {before[1]:g}"
                most = f"budget is {limits.budget:g} and max_delta {limits.max_delta:g} for all together"
                _decline(f"it would spend epsilon {cost[0]:g} and delta {cost[1]:g}, {spent}, {most}")
            self.runs[run] = {"epsilon": cost[0], "delta": cost[1], "fixed": fixed, "tasks": []}
        tasks: list[str | None] = self.runs[run]["tasks"]
        again = tasks[number - 1 : number] == [task]
        if self.runs[run]["fixed"] != fixed:
            _decline("it is no iteration of the run that it names: more than its centroids has changed")
        if number <= len(tasks) and not again:
            _decline("another document of this iteration was answered, or a later one")
        if again and not self._moved:
            return
        if not again:
            if tasks and len(tasks) == number - 1 and tasks[-1] != about["former"]:
                _decline("it does not follow from the iteration that was answered")
            tasks += [None] * (number - 1 - len(tasks)) + [task]
        self.write()

    def check_follows(self, document: Mapping[str, Any]) -> None:
        """Refuse a document that is not of the next iteration of a run that this phone takes part in."""
        about = document["round"]
        known = self.runs.get(about.get("run"), {"tasks": [], "fixed": None})
        last = known["tasks"][about["number"] - 2 : about["number"] - 1] if about["number"] > 1 else []
        if last != [about["former"]] or known["fixed"] != _fixed(document):
            _decline("it does not follow from the iteration that was answered")

    def holds(self, task: str) -> bool:
        """Say whether a task was written down."""
        return any(task in one["tasks"] for one in self.runs.values())

    def write(self) -> None:
        """Write it, whole or not at all: the second file has the old word and the new one until the total is there."""
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
