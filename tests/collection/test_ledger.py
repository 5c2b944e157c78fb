from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from hushuffle.collection import ledger as module
from hushuffle.collection.ledger import Candidate, LedgerBatch, begin, opened
from hushuffle.collection.record_tags import Tags, TagSorter, record_numbers
from hushuffle.errors import DataError
from hushuffle.files.secret_keys import fingerprint, key_folder, state_folder

KEY = bytes(range(32))


class Batches:
    """Makes candidates in files of their own."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._number = folder, 0

    def __call__(
        self,
        records: list[int],
        values: list[int],
        *,
        round_number: int = 0,
        mechanism: str = "m",
        shuffler: str = "Scrambler(dummies=3)",
    ) -> Candidate:
        self._number += 1
        folder = self._folder / f"batch-{self._number}"
        folder.mkdir()
        tags = Tags(key=KEY, round_number=round_number, mechanism=mechanism)
        sorter = TagSorter(folder, scope=tags.scope, plain=True)
        sorter.add(tags.of(np.array(records, dtype=np.uint64), np.array(values, dtype=np.int64)))
        return Candidate(entries=sorter.entries(), shuffler=shuffler, specification="people")


@pytest.fixture
def batch(tmp_path: Path) -> Batches:
    (tmp_path / "work").mkdir()
    return Batches(tmp_path / "work")


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    (tmp_path / "keys").mkdir()
    path = tmp_path / "keys" / "my.key"
    path.write_text(KEY.hex(), encoding="ascii")
    path.chmod(0o600)
    begin(KEY, path, new=True)
    return path


def admit(key_file: Path, *candidates: Candidate) -> tuple[bool, ...]:
    with opened(KEY, key_file) as ledger:
        fresh = ledger.check(candidates)
        ledger.admit([candidate for candidate, is_new in zip(candidates, fresh, strict=True) if is_new])
    return fresh


def contents() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in key_folder(KEY).iterdir()}


def test_a_batch_may_be_repeated_and_others_follow(key_file: Path, batch: Batches) -> None:
    assert admit(key_file, batch([1, 2, 3], [0, 1, 0])) == (True,)
    before = contents()
    assert admit(key_file, batch([3, 1, 2], [0, 0, 1])) == (False,)  # in another order
    assert contents() == before
    assert admit(key_file, batch([4, 5], [0, 1])) == (True,)
    assert admit(key_file, batch([1, 2, 3], [0, 1, 0])) == (False,)
    assert admit(key_file, batch([1, 2, 3], [1, 1, 1], round_number=1)) == (True,)
    folder = key_folder(KEY)
    assert sorted(contents()) == ["000001.tags", "000002.tags", "000003.tags", "ledger.json", "lock"]
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    with opened(KEY, key_file) as ledger:
        assert [(one.people, one.shuffler) for one in ledger.batches] == [
            (3, "Scrambler(dummies=3)"),
            (2, "Scrambler(dummies=3)"),
            (3, "Scrambler(dummies=3)"),
        ]


@pytest.mark.parametrize(
    ("records", "values", "more", "message"),
    [
        ([1, 2, 3], [0, 1, 1], {}, "^1 people have reported .* with other values"),
        ([1, 2, 3], [0, 1, 0], {"mechanism": "other"}, "^3 people have reported"),
        ([1, 2], [0, 1], {}, "^2 people are in an earlier, different batch"),
        ([1, 2, 3, 4], [0, 1, 0, 0], {}, "^3 people are in an earlier, different batch"),
        ([1, 2, 3], [0, 1, 0], {"shuffler": "Scrambler(dummies=0)"}, "with another shuffler or another number of dumm"),
        ([1, 2, 3], [0, 1, 0], {"shuffler": "UniformShuffle()"}, "with another shuffler or another number of dummies"),
    ],
)
def test_coins_that_are_used_up(
    key_file: Path, batch: Batches, records: list[int], values: list[int], more: dict[str, Any], message: str
) -> None:
    assert admit(key_file, batch([1, 2, 3], [0, 1, 0]))
    before = contents()
    with pytest.raises(DataError, match=message):
        admit(key_file, batch(records, values, **more))
    assert contents() == before


def test_hundreds_of_text_ids_are_people_of_their_own(key_file: Path, batch: Batches) -> None:
    numbers = record_numbers(pl.Series([f"{one}@example.org" for one in range(600)]), key=KEY).tolist()
    assert admit(key_file, batch(numbers[:300], [0] * 300)) == (True,)
    assert admit(key_file, batch(numbers[300:], [0] * 300)) == (True,)
    with pytest.raises(DataError, match=r"^1 people are in an earlier, different batch"):
        admit(key_file, batch(numbers[:1], [0]))


def symlink(path: Path) -> Path:
    (path.parent / "elsewhere").mkdir()
    link = path.parent / "elsewhere" / "link.key"
    link.symlink_to(path)
    return link


def hard_link(path: Path) -> Path:
    link = path.with_name("hard.key")
    link.hardlink_to(path)
    return link


def copy(path: Path) -> Path:
    (path.parent / "elsewhere").mkdir()
    return Path(shutil.copy2(path, path.parent / "elsewhere" / "copy.key"))


def rename(path: Path) -> Path:
    return path.rename(path.with_name("new-name.key"))


@pytest.mark.parametrize("way", [symlink, hard_link, copy, rename])
def test_a_key_has_one_ledger_wherever_it_lies(key_file: Path, batch: Batches, way: Callable[[Path], Path]) -> None:
    admit(key_file, batch([1, 2, 3], [0, 1, 0]))
    other = way(key_file)
    with pytest.raises(DataError, match="with other values"):
        admit(other, batch([1, 2, 3], [0, 1, 1]))
    assert admit(other, batch([1, 2, 3], [0, 1, 0])) == (False,)
    with pytest.raises(DataError, match=r"is not a new key: .* lists batches collected with it"):
        begin(KEY, other, new=True)


def test_a_key_without_a_ledger_must_be_said_to_be_new(tmp_path: Path) -> None:
    path = tmp_path / "found.key"
    path.write_text(KEY.hex(), encoding="ascii")
    with pytest.raises(
        DataError, match=r"has no ledger, so .* never been used anywhere, pass `--new-key`\. Otherwise restore"
    ):
        begin(KEY, path)
    assert not key_folder(KEY).exists()  # nothing has happened
    begin(KEY, path, new=True)
    begin(KEY, path, new=True)  # still nothing was collected with it
    begin(KEY, path)


def lose_ledger() -> None:
    shutil.rmtree(key_folder(KEY))


def lose_list() -> None:
    (key_folder(KEY) / "ledger.json").unlink()


def lose_state() -> None:
    shutil.rmtree(state_folder())


def lose_list_and_tags() -> None:
    for path in key_folder(KEY).iterdir():
        path.unlink()


@pytest.mark.parametrize("loss", [lose_ledger, lose_list, lose_state, lose_list_and_tags])
@pytest.mark.parametrize("new", [False, True])
def test_a_lost_ledger_is_noticed(key_file: Path, batch: Batches, loss: Callable[[], None], new: bool) -> None:
    """Even of a key that is said to be new."""
    admit(key_file, batch([1], [0]))
    loss()
    with pytest.raises(DataError, match=r"says that .* was used before, and its ledger is not at|is damaged"):
        begin(KEY, key_file, new=new)


def test_what_is_not_noticed(key_file: Path, batch: Batches, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy where nothing is remembered, of a key that is said to be new: the page says so."""
    admit(key_file, batch([1], [0]))
    other = copy(key_file)
    monkeypatch.setenv("HUSHUFFLE_STATE", str(key_file.parent / "another machine"))
    with pytest.raises(DataError, match="has no ledger"):
        begin(KEY, other)
    begin(KEY, other, new=True)


@pytest.mark.parametrize("size", [0, 8, 16, 47])
def test_tags_that_are_cut_off(key_file: Path, batch: Batches, size: int) -> None:
    admit(key_file, batch([1, 2, 3], [0, 1, 0]))
    tags = key_folder(KEY) / "000001.tags"
    os.truncate(tags, size)
    with pytest.raises(DataError, match=r"000001\.tags is damaged, so the uses of this key are unknown"):
        admit(key_file, batch([9], [0]))
    tags.unlink()
    with pytest.raises(DataError, match=r"000001\.tags is damaged"):
        admit(key_file, batch([9], [0]))


def test_a_list_that_is_damaged_or_older_than_its_tags(key_file: Path, batch: Batches) -> None:
    admit(key_file, batch([1], [0]))
    path = key_folder(KEY) / "ledger.json"
    older = path.read_bytes()
    admit(key_file, batch([2], [0]))
    whole = path.read_bytes()
    document = json.loads(whole)
    texts = ("null", "[{}]", "[[]]", '[{"people": "1", "digest": "0"}]', '[{"people": 1, "digest": "0", "scope": 1}]')
    odd = [json.dumps({**document, "batches": json.loads(text)}).encode() for text in texts]
    for content in (older, whole[:-9], b"", *odd):
        path.write_bytes(content)
        with pytest.raises(DataError, match="is damaged"):
            admit(key_file, batch([9], [0]))
    path.write_bytes(whole)
    assert admit(key_file, batch([9], [0])) == (True,)


@pytest.mark.parametrize("write", [0, 1, 2, 3])
def test_a_full_disk(key_file: Path, batch: Batches, write: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is not written through: the promised sentence, and the batch may come again."""
    admit(key_file, batch([1], [0]))
    count, fsync = [0], os.fsync

    def full(number: int) -> None:
        count[0] += 1
        if count[0] > write:
            raise OSError(28, "No space left on device")
        fsync(number)

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", full)
        with pytest.raises(DataError, match=r"cannot be written: No space left on device\. Nothing was released"):
            admit(key_file, batch([2, 3], [0, 1]))
    admit(key_file, batch([2, 3], [0, 1]))
    with pytest.raises(DataError, match="with other values"):
        admit(key_file, batch([2, 3], [1, 1]))
    assert sorted(contents()) == ["000001.tags", "000002.tags", "ledger.json", "lock"]


class Killed(BaseException):
    """The process is gone."""


def test_killed_at_any_call(key_file: Path, batch: Batches, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before and after every call that changes files: the batch is there or not, and may come again exactly."""
    admit(key_file, batch([1], [0]))
    start = contents()
    names = ("open", "fsync", "rename", "replace", "unlink")
    total = killed_after(10_000, key_file, batch, monkeypatch, names)
    assert total > 10
    for point in range(2 * total):
        shutil.rmtree(key_folder(KEY))
        key_folder(KEY).mkdir(mode=0o700)
        for name, content in start.items():
            (key_folder(KEY) / name).write_bytes(content)
        killed_after(point, key_file, batch, monkeypatch, names)
        with opened(KEY, key_file) as ledger:
            assert [one.people for one in ledger.batches] in ([1], [1, 2])
        admit(key_file, batch([2, 3], [0, 1]))
        with pytest.raises(DataError, match="with other values"):
            admit(key_file, batch([2, 3], [1, 1]))
        assert sorted(contents()) == ["000001.tags", "000002.tags", "ledger.json", "lock"]


def killed_after(
    point: int, key_file: Path, batch: Batches, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...]
) -> int:
    """Admit a batch and kill it before (even points) or after (odd) a call; return how many calls there were."""
    candidate, count = batch([2, 3], [0, 1]), [0]

    def wrapped(call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            if 2 * count[0] == point:
                count[0] += 1
                raise Killed
            result = call(*args, **kwargs)
            count[0] += 1
            if 2 * count[0] - 1 == point:
                raise Killed
            return result

        return counted

    with monkeypatch.context() as patched:
        for name in names:
            patched.setattr(os, name, wrapped(getattr(os, name)))
        with suppress(Killed):
            admit(key_file, candidate)
    return count[0]


def test_several_columns_are_admitted_together_or_not(key_file: Path, batch: Batches) -> None:
    first, other = batch([1, 2], [0, 1]), batch([1, 2], [0, 1], round_number=7)
    assert admit(key_file, first) == (True,)
    assert admit(key_file, first, other) == (False, True)
    before = contents()
    assert admit(key_file, first, other) == (False, False)
    with pytest.raises(DataError, match="with other values"):
        admit(key_file, batch([8], [0]), batch([1, 2], [1, 1]))
    with pytest.raises(DataError, match="in an earlier, different batch"):
        admit(key_file, batch([10, 11], [0, 0]), batch([10], [0]))
    assert contents() == before
    same = batch([20], [0])
    assert admit(key_file, same, same) == (True, False)


@pytest.mark.parametrize("sizes", [(3000, 40), (40, 3000), (3000, 2000), (1, 1)])
@pytest.mark.parametrize("sparse", [1, 4096])
def test_what_files_have_in_common(
    batch: Batches, sizes: tuple[int, int], sparse: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_CHUNK", 64)
    monkeypatch.setattr(module, "_SPARSE", sparse)
    rng = np.random.default_rng(sum(sizes))
    first, second = (rng.choice(4000, size, replace=False) for size in sizes)
    values = rng.integers(0, 2, (2, 4000))
    files = [
        batch(each.tolist(), values[side][each].tolist()).entries.file for side, each in enumerate((first, second))
    ]
    both = np.intersect1d(first, second)
    expected = (both.size, int(np.count_nonzero(values[0][both] != values[1][both])))
    assert module._in_both(*files) == expected
    assert module._in_both(*reversed(files)) == expected


def old_ledger(path: Path, candidates: list[Candidate]) -> None:
    """Write what earlier versions wrote beside a key."""
    parts = []
    for candidate in candidates:
        pairs = np.fromfile(candidate.entries.file, dtype="<u8").reshape(-1, 2)
        number = int.from_bytes(candidate.entries.digest[:8])
        columns = {"record": pairs[:, 0], "value": pairs[:, 1]}
        parts.append(pl.DataFrame(columns).with_columns(pl.lit(number, dtype=pl.UInt64).alias("batch")))
    pl.concat(parts).write_parquet(path)


def test_a_ledger_of_an_earlier_version_is_taken_over_once(tmp_path: Path, batch: Batches) -> None:
    path = tmp_path / "my.key"
    path.write_text(KEY.hex(), encoding="ascii")
    old_ledger(tmp_path / "my.key.ledger", [batch([1, 2], [0, 1]), batch([3], [0], round_number=1)])
    link = tmp_path / "link.key"
    link.symlink_to(path)
    with pytest.raises(DataError, match=r"is not a new key: .*my\.key\.ledger.* lists batches collected with it"):
        begin(KEY, link, new=True)
    with pytest.raises(DataError, match="2 people have reported under this key and round to an earlier version"):
        admit(link, batch([1, 2], [0, 1]))
    with pytest.raises(DataError, match="1 people have reported under this key and round to an earlier version"):
        admit(path, batch([3, 4], [0, 0], round_number=1))
    assert admit(path, batch([4], [0])) == (True,)
    assert (tmp_path / "my.key.ledger.imported").exists()
    assert not (tmp_path / "my.key.ledger").exists()
    (tmp_path / "my.key.ledger.imported").rename(tmp_path / "my.key.ledger")  # killed before it was put away
    with opened(KEY, path) as ledger:
        assert [(one.people, one.scope) for one in ledger.batches] == [(3, None), (1, ledger.batches[1].scope)]
    assert isinstance(ledger.batches[0], LedgerBatch)


@pytest.mark.parametrize("damage", [b"PAR1", b"", b"PAR1" * 99])
def test_a_damaged_ledger_of_an_earlier_version(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "my.key"
    path.write_text(KEY.hex(), encoding="ascii")
    (tmp_path / "my.key.ledger").write_bytes(damage)
    for _ in range(2):
        with pytest.raises(DataError, match=r"my\.key\.ledger is damaged"):
            begin(KEY, path)
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "my.key.ledger")
    with pytest.raises(DataError, match=r"my\.key\.ledger is damaged"):
        begin(KEY, path)


def test_a_folder_of_keys_that_is_read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mark beside the key is left where it can be: a folder of secrets is often mounted read-only."""
    path = tmp_path / "my.key"
    path.write_text(KEY.hex(), encoding="ascii")
    monkeypatch.setattr("hushuffle.collection.record_tags.write_private", refuse)
    begin(KEY, path, new=True)
    assert [each.name for each in tmp_path.iterdir()] == ["my.key"]
    assert (state_folder() / "used" / fingerprint(KEY)).exists()


def refuse(*_: Any, **__: Any) -> None:
    raise OSError(30, "Read-only file system")
