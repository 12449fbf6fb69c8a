"""``torc tui`` over a real ``sshd`` whose line takes 150 ms for a round trip; and how many requests keys make."""

import asyncio
import getpass
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from programs import BIN
from pty_program import PtyProgram
from tui_bench import tui_on, until

Create = Callable[[dict[str, Any]], int]
ROUND_TRIP_MS = 150
STEPS = 60
PIPE = Path(__file__).parents[1] / "helpers" / "delayed_pipe.py"


@pytest.fixture
def ssh(tmp_path: Path) -> list[str]:
    """The command that logs in at an ``sshd`` of this test's own, behind the slow line."""
    sshd = shutil.which("sshd", path="/usr/sbin:/usr/bin")
    if sshd is None or shutil.which("ssh") is None:
        pytest.skip("sshd is not installed")
    Path("/run/sshd").mkdir(exist_ok=True)
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / name], check=True)
    (tmp_path / "sshd_config").write_text(
        f"HostKey {tmp_path / 'host'}\nAuthorizedKeysFile {tmp_path / 'user.pub'}\nStrictModes no\nUsePAM no\n"
        "PermitRootLogin yes\nPermitUserEnvironment no\n"
    )
    proxy = [sys.executable, str(PIPE), str(ROUND_TRIP_MS), sshd, "-i", "-f", str(tmp_path / "sshd_config")]
    options = {
        "ProxyCommand": shlex.join(proxy),
        "IdentityFile": str(tmp_path / "user"),
        "IdentitiesOnly": "yes",
        "StrictHostKeyChecking": "no",
        "UserKnownHostsFile": "/dev/null",
        "LogLevel": "ERROR",
    }
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    return ["ssh", "-F", "none", "-tt", *words, f"{getpass.getuser()}@behind"]


def test_keys_over_a_slow_line(
    create: Create, own_server: str, torc_env: dict[str, str], ssh: list[str], work: Path
) -> None:
    """Keys that are held down arrive all, write little, and the program ends with the connection."""
    train = {"name": "train_{i}", "command": "true", "parameters": {"i": "1:500"}}
    create({"name": "sweep", "jobs": [train]})
    environment = {**torc_env, "LANG": "C.UTF-8", "TERM": "xterm-256color"}
    far = shlex.join(["env", *(f"{name}={value}" for name, value in environment.items()), str(BIN / "torc"), "tui"])
    with PtyProgram([*ssh, far], environment, work, columns=80, lines=24) as program:
        program.until("[SSE Live]")
        program.type("2\x1b[C")
        program.until("1 of 500")
        piece = program.settle(1.0)
        for _ in range(STEPS):
            program.type("\x1b[B")
        program.until(f"{STEPS + 1}", piece)
        program.settle(1.0)
        written = sum(map(len, program.written[piece:]))
        assert written / STEPS < 6 * 1024
        for keys, text in (
            ("/", "Enter take it"),
            ("name:train_77\r", "name:train_77 (Esc clears)"),
            ("l", "train_77"),
            ("q", "1 of 1 "),
            ("8", "500 jobs, "),
            ("1", "1 group of jobs"),
        ):
            piece = len(program.written)  # not settle(): the cursor of a prompt blinks
            program.type(keys)
            program.until(text, piece)
        program.type("q")
        assert program.process.wait(30) == 0


def test_keys_make_few_requests(create: Create, own_server: str, work: Path) -> None:
    """A cursor that runs through jobs and workflows asks for pages and for what it rests on, and not for each row."""
    for n in range(12):
        create({"name": f"w{n}", "jobs": [{"name": "train_{i}", "command": "true", "parameters": {"i": "1:900"}}]})

    async def whole() -> None:
        app = tui_on(own_server, work)
        async with app.run_test(size=(80, 24)) as pilot:
            await until(pilot, "[SSE Live]")
            await pilot.press("2", "right")
            await until(pilot, "1 of 900")
            await pilot.pause(0.5)
            asked: list[object] = []
            fetch = app.fetcher.fetch

            def counted(kind: object, *more: Any) -> None:
                asked.append(kind)
                fetch(kind, *more)

            app.fetcher.fetch = counted  # type: ignore[method-assign, assignment]  # counts calls
            await pilot.press(*(["down"] * 300))
            assert app.main.details.cursor == 300
            assert len(asked) <= 4
            asked.clear()
            await pilot.press("left", *(["down"] * 11))
            await until(pilot, "w0")
            assert asked.count("answers") <= 4

    asyncio.run(whole())
