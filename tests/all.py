"""Install what is missing into ``.venv`` and run everything that CI runs: format, lint, types, docs, tests.

usage: python3 tests/all.py [pytest arguments]

Any Python 3.11 or newer will do to start it; nothing outside the checkout is changed. With
``CI=true`` a test that lacks a service fails instead of being skipped; so there, where it may (as
root on Debian), this installs the services first.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
PLUGINS = ("local", "osmo", "recovery_oom", "recovery_ai", "sysexits", "slurm")
INSTALL = [
    *("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-e", ".[dev]"),
    *(argument for plugin in PLUGINS for argument in ("-e", f"plugins/{plugin}")),
]
CHECKS = [
    ["-m", "ruff", "format", "--check", "."],
    ["-m", "ruff", "check", "."],
    ["-m", "mypy"],
    ["docs/generate.py", "--check"],
]
PYTEST = ["-m", "pytest", "-n", "auto", "--dist", "worksteal"]
ON_CLUSTER = "tests/slurm"
TESTS_FAILED = 1
"""Exit code of pytest when it ran, and tests failed (pytest, "Exit codes")."""

SERVICES: dict[str, tuple[str, ...]] = {
    "acl": ("setfacl",),
    "chromium": ("chromium", "chromium-browser", "google-chrome"),
    "elvish": ("elvish",),
    "fish": ("fish",),
    "postgresql": ("initdb", "/usr/lib/postgresql/*/bin/initdb"),
    "systemd": ("systemd-analyze",),
    "zsh": ("zsh",),
}
"""Debian packages of what tests run, and where the program is by which they are known to be there: a name or a path.

Those of Slurm are no part of it: tests/slurm/cluster.sh installs them for the cluster that it makes.
"""
APT_LOCK = Path("/tmp/apt.lock")
"""Held by whoever runs apt-get here; also by tests/slurm/cluster.sh."""


def is_there(program: str) -> bool:
    """Say whether there is such a program."""
    if program.startswith("/"):
        return any(Path("/").glob(program.removeprefix("/")))
    return shutil.which(program) is not None


def install_services() -> None:
    """Install the packages that are missing; whatever goes wrong, the tests that need them will tell."""
    missing = [package for package, programs in SERVICES.items() if not any(map(is_there, programs))]
    if not missing or os.environ.get("CI") != "true" or os.geteuid() != 0 or not is_there("apt-get"):
        return
    install = ["install", "--yes", "--quiet", "--no-install-recommends", *missing]
    with APT_LOCK.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for arguments in (["update", "--quiet"], install):
            print("+ apt-get", *arguments, flush=True)
            environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
            command = ["apt-get", "-o", "DPkg::Lock::Timeout=300", *arguments]
            subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False)


def step(arguments: list[str]) -> int:
    """Run the environment's Python with these arguments and say so."""
    print("+ python", *arguments, flush=True)
    return subprocess.run([PYTHON, *arguments], cwd=ROOT, check=False).returncode


def make_environment() -> None:
    """Create ``.venv``; some systems ship Python without the files that put pip into it."""
    try:
        venv.create(VENV, with_pip=True, symlinks=True)
    except subprocess.CalledProcessError:
        venv.create(VENV, clear=True, symlinks=True)
        subprocess.run([sys.executable, "-m", "pip", "--python", str(PYTHON), "install", "--quiet", "pip"], check=True)


def run_tests(arguments: list[str]) -> list[int]:
    """Run what pytest is asked for, by default everything: the tests on the Slurm cluster after all others.

    Slurm has time limits of its own, which a busy machine overruns: a test on the cluster that failed beside others
    is tried once more by itself, and what is wrong is wrong again.
    """
    if arguments:
        return [step([*PYTEST, *arguments])]
    others = step([*PYTEST, f"--ignore={ON_CLUSTER}"])
    on_cluster = step([*PYTEST, ON_CLUSTER])
    if on_cluster == TESTS_FAILED:
        on_cluster = step(["-m", "pytest", "--last-failed", ON_CLUSTER])
    return [others, on_cluster]


def main() -> int:
    """Return 0 when every step passed, else the status of the first that did not."""
    if not PYTHON.exists():
        make_environment()
    if status := step(INSTALL):
        return status
    install_services()
    # All steps run, so that one look at the output shows everything that is wrong.
    statuses = [*map(step, CHECKS), *run_tests(sys.argv[1:])]
    return next((status for status in statuses if status), 0)


if __name__ == "__main__":
    sys.exit(main())
