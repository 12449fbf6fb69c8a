"""A real Slurm cluster for tests, and the installed program run on it by an unprivileged user.

`tests/slurm/cluster.sh` makes the cluster, all of it on this machine. There is one for all processes
that run tests: ordinary tests share it, and one that disturbs others (that kills a node, or stops the
controller) has it alone.
"""

import fcntl
import json
import os
import pwd
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
import waiting
from programs import BIN

SCRIPT: Final = Path(__file__).parents[1] / "slurm" / "cluster.sh"
LOCK: Final = Path("/var/tmp/torc-slurm-tests.lock")
GATE: Final = LOCK.with_suffix(".gate")
USER: Final = os.environ.get("SLURM_DEV_USER", "hpcuser")
STARTED: Final = "slurm-cluster-started"
"""File in the common folder of the test run that started the cluster."""
MISSING: Final = "the test cluster needs root and Debian 12's packages"
"""Why there may be no cluster."""


class Cluster:
    """The cluster as one user sees it, with a folder of this user."""

    def __init__(self, user: str, bin_folder: Path, folder: Path) -> None:
        self.user, self.bin, self.folder = user, bin_folder, folder

    @property
    def environment(self) -> dict[str, str]:
        """The user's environment, without settings of the user who runs the tests."""
        return {
            "HOME": str(self.folder / "home"),
            "USER": self.user,
            "LOGNAME": self.user,
            "LANG": "C.UTF-8",
            "PATH": f"{self.bin}:/usr/local/bin:/usr/bin:/bin",
        }

    def _command(self, arguments: Sequence[str | Path | int]) -> list[str]:
        words = [str(argument) for argument in arguments]
        if self.user == "root":
            return words
        become = ("/usr/bin/setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--init-groups", "--")
        return [*become, *words]  # runuser(1) would set HOME

    def run(
        self, *arguments: str | Path | int, env: dict[str, str] | None = None, timeout: float = 300, check: bool = False
    ) -> "subprocess.CompletedProcess[str]":
        """Run a program as the user, in the user's folder."""
        done = subprocess.run(
            self._command(arguments),
            cwd=self.folder,
            env={**self.environment, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if check:
            assert done.returncode == 0, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def start(self, *arguments: str | Path | int, env: dict[str, str] | None = None) -> "subprocess.Popen[str]":
        """Start a program as the user; its output goes to pipes."""
        return subprocess.Popen(
            self._command(arguments),
            cwd=self.folder,
            env={**self.environment, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def torc(
        self, *arguments: str | Path | int, env: dict[str, str] | None = None, timeout: float = 300
    ) -> "subprocess.CompletedProcess[str]":
        """Run the installed ``torc`` as the user."""
        return self.run(self.bin / "torc", *arguments, env=env, timeout=timeout)

    def write(self, name: str, text: str) -> Path:
        """Write a file of the user's."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        give(path, self.user, self.folder)
        return path

    def slurm(self, *arguments: str, check: bool = True) -> str:
        """Run a program of Slurm as the user; return what it printed, without the last line end."""
        return self.run(*arguments, check=check).stdout.rstrip("\n")

    @contextmanager
    def server(self, *options: str) -> Iterator[str]:
        """Run a server as the user; yield its base URL."""
        command = [str(self.bin / "torc-server"), "run", "--host", "127.0.0.1", "--port", "0", "--log-level", "warning"]
        process = self.start(*command, "--database", str(self.folder / "torc.db"), *options)
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            line = process.stdout.readline()
            assert line.startswith("TORC_SERVER_PORT="), process.stderr.read()
            yield f"http://127.0.0.1:{int(line.partition('=')[2])}/torc-service/v1"
        finally:
            process.terminate()
            process.communicate(timeout=30)


class ServedTorc:
    """The program as a user of the cluster runs it, with a server."""

    def __init__(self, cluster: Cluster, url: str) -> None:
        self.cluster, self.env = cluster, {"TORC_API_URL": url}

    def __call__(self, *arguments: str, code: int = 0) -> str:
        """Run it; return what it printed to either stream."""
        done = self.cluster.torc(*arguments, env=self.env)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def json(self, *arguments: str, code: int = 0) -> Any:
        """Run it; return the JSON that it printed."""
        done = self.cluster.torc("-f", "json", *arguments, env=self.env)
        assert done.returncode == code, done.stdout + done.stderr
        return json.loads(done.stdout)

    def allocations(self, workflow: str = "1") -> list[dict[str, Any]]:
        """Return the records of a workflow's allocations."""
        return list(self.json("scheduled-compute-nodes", "list", workflow)["scheduled_compute_nodes"])

    def counts(self, workflow: str = "1") -> Counter[str]:
        """Return a workflow's jobs by status."""
        return Counter(self.json("workflows", "status", workflow)["job_counts"])

    def calls(self, purpose: str = "allocations") -> dict[str, int]:
        """Return how often each program of Slurm was called for a purpose."""
        return {
            row["program"]: row["calls"] for row in self.json("slurm", "calls")["calls"] if row["purpose"] == purpose
        }

    def queue(self) -> set[str]:
        """Return the ids of the user's batch jobs that wait or run."""
        return {*self.cluster.slurm("squeue", "--me", "-h", "-r", "-o", "%A").split()}

    def has_batch_jobs(self) -> bool:
        """Return whether the queue has batch jobs from this test's folder."""
        return str(self.cluster.folder) in self.cluster.slurm("squeue", "--me", "-h", "-o", "%Z").splitlines()

    def cancel_all(self) -> None:
        """Cancel all allocations of all workflows."""
        for workflow in self.json("workflows", "list"):
            for node in self.allocations(str(workflow["id"])):
                self.cluster.slurm("scancel", "--me", str(node["scheduler_id"]), check=False)


eventually = partial(waiting.eventually, patience_s=240.0, pause_s=0.5)
"""Waits for a condition on the cluster, with long pauses because each check calls the controller."""


def give(path: Path, user: str, root: Path) -> None:
    """Make the user the owner of a file, and of the folders between it and ``root``."""
    facts = pwd.getpwnam(user)
    while path != root:
        os.chown(path, facts.pw_uid, facts.pw_gid)
        path = path.parent


def script(*arguments: str) -> None:
    """Run the script that makes the cluster."""
    done = subprocess.run([SCRIPT, *arguments], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, f"cluster.sh {' '.join(arguments)}: {done.stdout}{done.stderr}"


def can_be_made() -> bool:
    """Return whether this machine can run the cluster."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def is_up() -> bool:
    """Return whether the cluster's controller answers."""
    if shutil.which("scontrol") is None:
        return False
    done = subprocess.run(["scontrol", "ping"], capture_output=True, text=True, timeout=60, check=False)
    return "is UP" in done.stdout


def start_for_tests(common: Path) -> None:
    """Start the cluster unless it is up; skip the test where that is impossible, and fail it in CI.

    Args:
        common: Folder that all processes of the test run share.
    """
    if not can_be_made():
        if os.environ.get("CI") == "true":
            pytest.fail(MISSING)
        pytest.skip(MISSING)
    if is_up():
        return
    with held(alone=False):  # a test that has it alone may have stopped the controller for a while
        if is_up():
            return
    with held(alone=True):
        if not is_up():
            (common / STARTED).touch()
            script("up")


def stop_after_tests(common: Path) -> None:
    """Stop the cluster if this test run started it."""
    if (common / STARTED).exists():
        with held(alone=True):
            script("down")
        (common / STARTED).unlink()


@contextmanager
def held(*, alone: bool) -> Iterator[None]:
    """Hold the cluster, alone or together with others, in the order of arrival.

    A process that waits to hold it alone holds the gate, so that processes that share it cannot pass for ever.
    """
    with LOCK.open("a") as lock:
        with GATE.open("a") as gate:
            fcntl.flock(gate, fcntl.LOCK_EX)
            fcntl.flock(lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield


def bridge() -> Path:
    """Return a folder of programs that any user may run: this project in Debian's Python.

    The Python that runs the tests may lie in a folder that only its owner may enter.
    """
    site_packages = sysconfig.get_path("purelib")
    folder = Path(f"/var/tmp/torc-slurm-python-{zlib.crc32(site_packages.encode())}")
    with folder.with_suffix(".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _build_bridge(folder, site_packages)
    return folder / "bin"


def _build_bridge(folder: Path, site_packages: str) -> None:
    if not (folder / "bin" / "torc-dash").exists():
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", "--clear", folder], check=True)
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        link = folder / "lib" / version / "site-packages" / "project.pth"
        link.write_text(f"import site; site.addsitedir({site_packages!r})\n", encoding="utf-8")
        for program in ("torc", "torc-server", "torc-dash"):
            path = folder / "bin" / program
            text = (BIN / program).read_text(encoding="utf-8").partition("\n")[2]
            path.write_text(f"#!{folder}/bin/python\n{text}", encoding="utf-8")
            path.chmod(0o755)


def chosen_user() -> tuple[str, Path]:
    """Return the user who runs the program and the program's folder: an unprivileged user if possible."""
    try:
        programs = bridge()
    except (OSError, subprocess.CalledProcessError):
        return "root", BIN
    command = ["/usr/sbin/runuser", "-u", USER, "--", str(programs / "torc"), "--version"]
    done = subprocess.run(command, capture_output=True, cwd="/", timeout=120, check=False)
    return (USER, programs) if done.returncode == 0 else ("root", BIN)


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """Yield the running cluster for a user with an empty folder."""
    user, programs = chosen_user()
    folder = Path(tempfile.mkdtemp(prefix="torc-slurm-", dir="/var/tmp"))
    try:
        (folder / "home").mkdir()
        give(folder / "home", user, folder.parent)
        yield Cluster(user, programs, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
