"""The page about three hosts is followed word by word, in network namespaces of this machine."""

from __future__ import annotations

import doctest
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from network.test_how_to import BLOCK, ROOT
from network.test_how_to import PAGE as PLAN_PAGE

PAGE = ROOT / "docs" / "how-to" / "phones-on-three-hosts.md"
MARK = "----next----"


IP, BASH = shutil.which("ip"), shutil.which("bash")
BRIDGE = Path("/sys/class/net/hushuffle")


def _allowed(name: str) -> bool:
    """Say whether this user can make network namespaces here."""
    assert IP is not None
    made = subprocess.run([IP, "netns", "add", name], capture_output=True, check=False).returncode == 0
    if made:
        subprocess.run([IP, "netns", "del", name], check=True)
    return made


@pytest.fixture
def blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, str, str]]]:
    monkeypatch.chdir(tmp_path)
    plan = [block for block in BLOCK.findall(PLAN_PAGE.read_text(encoding="utf-8")) if block[1] == "plan.toml"]
    yield plan + BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    if BRIDGE.exists():
        assert BASH is not None
        subprocess.run([BASH, "away.sh"], cwd=tmp_path, check=False)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0 or not (IP and BASH), reason="needs root and iproute2")
def test_the_page_does_what_it_says(blocks: list[tuple[str, str, str]], tmp_path: Path) -> None:
    if BRIDGE.exists() or not _allowed(f"hushuffle-{os.getpid()}"):
        pytest.skip("needs network namespaces, and the name of the bridge")
    commands, wanted = [], []
    for language, title, content in blocks:
        if title:
            (tmp_path / title).write_text(content, encoding="utf-8")
        for part in re.split(r"^\$ ", content, flags=re.MULTILINE)[1:] if language == "console" else ():
            command, _, expected = part.partition("\n")
            commands.append(f"({command.removesuffix(' &')})" + " 2>/dev/null &" * command.endswith(" &"))
            wanted.append(expected)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    script = f"\necho {MARK}\n".join(commands)
    (tmp_path / "all.sh").write_text(f"set -e\n{script}\n", encoding="utf-8")
    with (tmp_path / "printed").open("w") as out:  # a pipe would be held open by the services
        environment = {**os.environ, "PATH": path}
        done = subprocess.run([str(BASH), "all.sh"], env=environment, stdout=out, timeout=400, check=False)
    printed = (tmp_path / "printed").read_text().split(f"{MARK}\n")
    assert done.returncode == 0, printed[-1]
    assert len(printed) == len(commands)
    for command, text, expected in zip(commands, printed, wanted, strict=True):
        assert not expected or doctest.OutputChecker().check_output(expected, text, doctest.ELLIPSIS), command
    (written,) = (tmp_path / "back" / "result" / "results").iterdir()
    assert json.loads(written.read_text())["answers"][0]["sources"] == 3
    assert not BRIDGE.exists()
