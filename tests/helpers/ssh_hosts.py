"""Real SSH hosts for tests, and the installed program run from their client's network.

`tests/ssh/hosts.sh` makes the hosts, in namespaces on this machine; its head describes them and their faults. The
network of a set of hosts is private, so each process that runs tests has a set of its own, and a test that disturbs
its hosts has a fresh one: a set takes a second.
"""

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final

from attrs import frozen
from programs import BIN

ROOT: Final = Path(__file__).parents[2]
SCRIPT: Final = ROOT / "tests" / "ssh" / "hosts.sh"
FOLDERS: Final = Path("/var/tmp")
PREFIX: Final = "torc-ssh-"
USER: Final = "worker"
"""The user on all hosts."""
CLIENT: Final = "10.77.0.1"
"""Address of the client in the network of the hosts."""
_OWNER: Final = ".owner"
"""Suffix of the file that the process locks to which a set of hosts belongs."""
_NAMESPACES: Final = ("unshare", "--net", "--pid", "--mount", "--uts", "--fork", "true")


@frozen
class ConnectionCounts:
    """What a host's ``sshd`` has seen since the host was made.

    Attributes:
        opened: TCP connections.
        accepted: Log-ins.
        sessions: Sessions, of all connections.
        open_now: Connections that are open.
    """

    opened: int
    accepted: int
    sessions: int
    open_now: int


class SshHosts:
    """A set of hosts, named ``h1``, ``h2`` and so on, and the client that reaches them.

    Args:
        folder: Where ``hosts.sh`` keeps the set.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "client" / "home"
        """Home of the user on the client: keys, ``~/.ssh/config``, ``~/.ssh/known_hosts``."""
        self.shared = folder / "shared"
        """A folder that the client and the user on all hosts may write to, at the same path."""

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the client's user, without settings of the user who runs the tests."""
        return {
            "HOME": str(self.home),
            "USER": "root",
            "LOGNAME": "root",
            "LANG": "C.UTF-8",
            "PATH": f"{BIN}:/usr/local/bin:/usr/bin:/bin",
            "SSH_DEV_DIR": str(self.folder),
            "SSH_DEV_SHARE": ":".join(map(str, _shared_folders())),
            "SLURM_CONF": os.devnull,
        }

    def script(self, *words: str | int) -> str:
        """Run ``hosts.sh``; return what it printed."""
        command = [str(SCRIPT), *map(str, words)]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, f"hosts.sh {' '.join(command[1:])}: {done.stdout}{done.stderr}"
        return done.stdout

    def up(self, count: int = 4) -> None:
        """Start this many hosts, and wait until they answer."""
        self.script("up", count)

    def down(self) -> None:
        """End everything that was started, also what was started in the client's network."""
        self.script("down")

    def fault(self, what: str, host: str, *words: str | int) -> None:
        """Disturb a host, or end that: ``fault("cut", "h1", "in")``, ``fault("join", "h1")``; see ``hosts.sh``."""
        self.script(what, host, *words)

    def exec(self, host: str, *command: str | Path) -> str:
        """Run a command as root on a host, not over SSH; return what it printed. Its exit code has to be 0."""
        return self.script("exec", host, *map(str, command))

    def count(self, host: str) -> ConnectionCounts:
        """Return what the host's ``sshd`` has counted."""
        pairs = (pair.split("=") for pair in self.script("count", host).split())
        return ConnectionCounts(**{name: int(number) for name, number in pairs})

    def log(self, host: str) -> str:
        """Return the log of the host's ``sshd``."""
        return self.script("log", host)

    def start(
        self,
        *command: str | Path | int,
        env: dict[str, str] | None = None,
        cwd: Path | None = None,
        stderr: Path | None = None,
    ) -> "subprocess.Popen[str]":
        """Start a program in the client's network; a signal reaches the program itself.

        Args:
            command: Its words.
            env: Further variables.
            cwd: Where it runs; in the home of the client's user if not given.
            stderr: File for its standard error; without it a pipe, as for the standard output.
        """
        with stderr.open("w") if stderr else nullcontext(subprocess.PIPE) as errors:
            return subprocess.Popen(
                [str(SCRIPT), "run", *map(str, command)],
                cwd=cwd or self.home,
                env={**self.environment, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def run(
        self,
        *command: str | Path | int,
        env: dict[str, str] | None = None,
        cwd: Path | None = None,
        timeout: float = 120,
    ) -> "subprocess.CompletedProcess[str]":
        """Run a program in the client's network."""
        process = self.start(*command, env=env, cwd=cwd)
        try:
            stdout, stderr = process.communicate(timeout=timeout)
        finally:
            process.kill()
        return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)

    def pytest(self, file: Path, base: Path, *options: str, env: dict[str, str] | None = None) -> None:
        """Run a file of tests in the client's network, where ``asyncssh`` in the tests' process reaches the hosts.

        Args:
            file: The file; its name does not begin with ``test_``, so that it runs nowhere else.
            base: Folder for its temporary files.
            options: Further words for pytest.
            env: Further variables.
        """
        words = ["-p", "no:cacheprovider", f"--basetemp={base}", "-q", "-n", "0"]
        done = self.run(sys.executable, "-m", "pytest", *words, file, *options, env=env, cwd=ROOT, timeout=600)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "passed" in done.stdout

    def install_torc(self, *hosts: str) -> None:
        """Let the user on these hosts find ``torc`` in ``~/.local/bin``."""
        for host in hosts:
            folder = f"/home/{USER}/.local/bin"
            words = f"mkdir -p {folder} && ln -sf {BIN / 'torc'} {folder}/torc && chown -Rh {USER}: /home/{USER}/.local"
            self.exec(host, "sh", "-c", words)

    @contextmanager
    def server(self, folder: Path, *options: str, address: str = "127.0.0.1") -> Iterator[str]:
        """Run a torc server on a database in this folder; yield its base URL.

        Args:
            folder: Folder of the database.
            options: Further options of ``torc-server run``.
            address: Where it listens in the client's network; hosts reach ``CLIENT`` only.
        """
        words = ["--host", address, "--port", "0", "--log-level", "warning", "--database", str(folder / "torc.db")]
        log = folder / "server.log"
        process = self.start(BIN / "torc-server", "run", *words, *options, cwd=folder, stderr=log)
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert line.startswith("TORC_SERVER_PORT="), log.read_text()
            yield f"http://{address}:{int(line.partition('=')[2])}/torc-service/v1"
        finally:
            process.terminate()
            process.communicate(timeout=30)


class ClientTorc:
    """The program as the client's user runs it, in a folder of a test, with a server.

    Args:
        hosts: The hosts.
        folder: The working folder.
        url: Base URL of the server.
    """

    def __init__(self, hosts: SshHosts, folder: Path, url: str) -> None:
        self.hosts, self.folder = hosts, folder
        self.env = {"TORC_API_URL": url, "XDG_STATE_HOME": str(folder / ".state")}

    def start(self, *arguments: str | Path | int) -> "subprocess.Popen[str]":
        """Start it; its output goes to pipes."""
        return self.hosts.start(BIN / "torc", *arguments, env=self.env, cwd=self.folder)

    def run(self, *arguments: str | Path | int, timeout: float = 240) -> "subprocess.CompletedProcess[str]":
        """Run it."""
        return self.hosts.run(BIN / "torc", *arguments, env=self.env, cwd=self.folder, timeout=timeout)

    def __call__(self, *arguments: str | Path | int, code: int = 0) -> str:
        """Run it; return what it printed to either stream."""
        done = self.run(*arguments)
        assert done.returncode == code, f"{done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def json(self, *arguments: str | Path | int, code: int = 0) -> Any:
        """Run it; return the JSON that it printed."""
        done = self.run("-f", "json", *arguments)
        assert done.returncode == code, f"{done.returncode}\n{done.stdout}{done.stderr}"
        return json.loads(done.stdout)

    def write(self, name: str, content: object) -> Path:
        """Write a file of the working folder: a text, or a value as JSON."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path


def _shared_folders() -> Sequence[Path]:
    """Return the folders that the user on the hosts has to read to run this project's programs."""
    folders = [ROOT, Path(sys.prefix), Path(sys.base_prefix)]
    return [each for each in folders if not any(each.is_relative_to(other) for other in folders if other != each)]


def why_none() -> str | None:
    """Return why this machine cannot run hosts; None if it can."""
    if os.geteuid() != 0:
        return "test hosts for SSH need root"
    if shutil.which("unshare") is None or subprocess.run(_NAMESPACES, check=False).returncode:
        return "test hosts for SSH need namespaces, which this machine does not allow"
    missing = subprocess.run([SCRIPT, "missing"], capture_output=True, text=True, check=False).stdout.split()
    if missing and shutil.which("apt-get") is None:
        return f"test hosts for SSH need programs of these Debian packages: {', '.join(missing)}"
    return None


@contextmanager
def running_hosts(count: int = 4) -> Iterator[SshHosts]:
    """Run a new set of hosts, which belongs to this process."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=FOLDERS))
    hosts = SshHosts(folder)
    with folder.with_suffix(_OWNER).open("w") as owner:
        fcntl.flock(owner, fcntl.LOCK_EX)
        try:
            hosts.up(count)
            yield hosts
        finally:
            hosts.down()
            folder.with_suffix(_OWNER).unlink()


def end_abandoned() -> None:
    """End the sets of hosts whose processes were killed."""
    for path in FOLDERS.glob(f"{PREFIX}*{_OWNER}"):
        with path.open("a") as owner:
            try:
                fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            SshHosts(path.with_suffix("")).down()
            path.unlink(missing_ok=True)
