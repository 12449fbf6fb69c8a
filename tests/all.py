"""Install what is missing into ``.venv``, check the sources, and run the tests: all, some tiers of them, some rooms.

usage: python3 tests/all.py [--quick] [NAME ...] [pytest arguments]

  python3 tests/all.py              everything that CI runs: the checks, then all tests
  python3 tests/all.py --quick      before a commit, in under two minutes on 2 cores: the checks, then the quick tiers
                                    on SQLite alone; first the test files that differ from the branch main, and
                                    those of the quick tiers that import a module that does
  python3 tests/all.py store e2e    the tests of these tiers or rooms (see the table), without the checks
  python3 tests/all.py runner -x    what follows the names goes to pytest
  python3 tests/all.py tests/store/test_store_claims.py -k resources -n 0
                                    what pytest alone would be asked for

The checks are the format and the rules of ruff, the types (mypy; its cache makes every run but the first quick), and
whether the generated pages of docs/ fit the code. The tests run in three processes for two cores; with -n 0 in one,
where -s and --pdb work. --durations=20 shows the slowest.

Any Python 3.11 or newer starts this program. It changes nothing outside the checkout, and installs again when a
pyproject.toml has changed. With CI=true a test that lacks a service fails instead of being skipped; so there, where it
may (as root on Debian), this program installs the services first.
"""

import ast
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import threading
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
PLUGINS = ("local", "osmo", "recovery_oom", "recovery_ai", "sysexits", "slurm", "ssh", "k8s")
PIP_INSTALL = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
INSTALLS = [
    [*PIP_INSTALL, "hatchling>=1.27", "editables"],
    [
        *(*PIP_INSTALL, "--no-build-isolation", "--no-compile", "-e", ".[dev]"),
        *(argument for plugin in PLUGINS for argument in ("-e", f"plugins/{plugin}")),
    ],
]
"""What installs the builder of the project, and then the project, its plugins and its tools.

The builder is installed once and not for each of them anew, and Python compiles the modules that it imports: together
this takes half of the time.
"""
INSTALLED = VENV / "installed"
"""Digest of the project files that the environment was made from."""
CHECKS = [
    ["-m", "ruff", "format", "--check", "."],
    ["-m", "ruff", "check", "."],
    ["-m", "mypy"],
    ["docs/generate.py", "--check"],
]
WORKERS = max(2, (os.cpu_count() or 1) * 3 // 2)
"""Processes that run tests: more than cores, as about half of the time of the tests is waiting."""
PYTEST = ["-m", "pytest", "-n", str(WORKERS), "--dist", "worksteal"]
TESTS_FAILED = 1
"""Exit code of pytest when it ran, and tests failed (pytest, "Exit codes")."""
MAX_TRIED_AGAIN = 5
"""Of so many tests that fail beside others each is tried once more by itself; more are a defect, not a busy machine."""
CACHE = ROOT / ".pytest_cache"
FAILED_TESTS = Path("v", "cache", "lastfailed")
"""Where pytest keeps the names of the tests that failed, in its cache ("How to re-run failed tests", as JSON)."""


class Tier(NamedTuple):
    """Rooms whose tests start the same kinds of things.

    Attributes:
        seconds: How long the tests take on 2 cores, about.
        rooms: Folders of tests/; those with a slash are folders of the checkout.
        about: What the tests start.
    """

    seconds: int
    rooms: tuple[str, ...]
    about: str


TIERS: dict[str, Tier] = {
    "unit": Tier(
        30,
        (
            *(
                "allocations",
                "architecture",
                "config",
                "exits",
                "graph",
                "hpc",
                "job_filters",
                "logs",
                "resource_samples",
                "models",
                "recovery",
            ),
            *("spec", "text", "plugins/osmo", "plugins/recovery_ai", "plugins/recovery_oom", "plugins/sysexits"),
        ),
        "functions and classes; a few modules start a process or a torc server",
    ),
    "store": Tier(40, ("store",), "databases on SQLite and on a PostgreSQL server, no torc server"),
    "contract": Tier(45, ("contract",), "the contract suites for plugins, on the plugins of this repository"),
    "defects": Tier(240, ("defects",), "the contract suites for plugins, on faulty and on uncommon ones"),
    "executors": Tier(
        45,
        ("supervision", *(f"plugins/{name}" for name in ("local", "slurm", "ssh", "k8s"))),
        "launchers of jobs; Slurm is scripted",
    ),
    "server": Tier(
        180, ("server", "client", "embedded", "benchmarks"), "torc servers, asked over HTTP, on both kinds of database"
    ),
    "runner": Tier(50, ("runner",), "runners inside the tests' process, on a torc server, with jobs"),
    "commands": Tier(
        150,
        ("cli", "docs", "explain", "forensics", "mcp", "pending", "plots", "plugins", "reports", "tui"),
        "the installed commands, a room for each subject",
    ),
    "dashboard": Tier(150, ("dashboard",), "torc-dash with torc servers and commands, asked as a browser does"),
    "e2e": Tier(230, ("e2e",), "the installed commands as a user calls them, from the spec to the report"),
    "crash": Tier(80, ("crash",), "servers, runners and commands that are killed while they work"),
    "packages": Tier(60, ("thirdparty",), "new environments with installed distributions; needs the package registry"),
    "ssh": Tier(240, ("ssh",), "SSH hosts in namespaces of this machine (needs root and Debian)"),
    "k8s": Tier(300, ("k8s",), "a real Kubernetes cluster on this machine (needs root and Debian; built once)"),
    "cluster": Tier(900, ("slurm",), "a real Slurm cluster on this machine (needs root and Debian)"),
}
QUICK = ("unit", "store", "contract")
QUICK_OPTIONS = ["-k", "not postgres"]
ON_CLUSTERS = ("tests/slurm", "tests/k8s")
"""Folders whose tests mostly wait for a cluster; they run together, after all others."""
IN_MORE_PROCESSES = ("-n", str(WORKERS + 2), "--dist", "load", "--maxschedchunk", "1")
"""Options of pytest for tests that mostly wait, and begin in the order of tests/helpers/cluster_order.py."""
BESIDE_CLUSTERS = ("unit", "store")
"""Tiers that run while tests on clusters wait, with the lowest priority: their tests judge no durations."""
BESIDE_CLUSTERS_OPTIONS = ("-n", "2", "--dist", "worksteal", "-o", "cache_dir=.pytest_cache/beside_clusters")
NOT_FIRST = (*ON_CLUSTERS, "tests/thirdparty")
"""Folders whose tests ``--quick`` leaves out although they changed: they take longer than it may."""

SERVICES: dict[str, tuple[str, ...]] = {
    "acl": ("setfacl",),
    "apache2-bin": ("apache2", "/usr/sbin/apache2"),
    "chromium": ("chromium", "chromium-browser", "google-chrome"),
    "elvish": ("elvish",),
    "firefox-esr": ("firefox-esr", "firefox"),
    "fish": ("fish",),
    "nginx-light": ("nginx", "/usr/sbin/nginx"),
    "postgresql": ("initdb", "/usr/lib/postgresql/*/bin/initdb"),
    "systemd": ("systemd-analyze",),
    "tmux": ("tmux",),
    "zsh": ("zsh",),
}
"""Debian packages of what tests run, and how to find each on the machine: by the name or the path of a program.

Those of Slurm, SSH and Kubernetes are no part of it: tests/slurm/cluster.sh, tests/ssh/hosts.sh and
tests/k8s/cluster.sh install what they need.
"""
APT_LOCK = Path("/tmp/apt.lock")
"""Held while apt-get runs; also by the scripts that install packages in tests/slurm, tests/ssh and tests/k8s."""


def is_there(program: str) -> bool:
    """Say whether there is such a program."""
    if program.startswith("/"):
        return any(Path("/").glob(program.removeprefix("/")))
    return shutil.which(program) is not None


def install_services() -> None:
    """Install the packages that are missing; after a failure the tests that need them fail."""
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
    """Print these arguments and run the environment's Python with them."""
    print("+ python", *arguments, flush=True)
    return subprocess.run([PYTHON, *arguments], cwd=ROOT, check=False).returncode


def make_environment() -> None:
    """Create ``.venv``; some systems ship Python without the files that put pip into it."""
    try:
        venv.create(VENV, with_pip=True, symlinks=True)
    except subprocess.CalledProcessError:
        venv.create(VENV, clear=True, symlinks=True)
        subprocess.run([sys.executable, "-m", "pip", "--python", str(PYTHON), "install", "--quiet", "pip"], check=True)


def install() -> int:
    """Install the project, its plugins and its tools into ``.venv`` unless they are; return pip's exit code."""
    projects = [ROOT / "pyproject.toml", *(ROOT / "plugins" / plugin / "pyproject.toml" for plugin in PLUGINS)]
    digest = hashlib.sha256(b"\0".join(path.read_bytes() for path in projects)).hexdigest()
    if PYTHON.exists() and INSTALLED.exists() and INSTALLED.read_text() == digest:
        return 0
    if not PYTHON.exists():
        make_environment()
    if status := next(filter(None, map(step, INSTALLS)), 0):
        return status
    INSTALLED.write_text(digest)
    return 0


def folder_of(room: str) -> str:
    """Return the folder of a room's tests."""
    return f"{room}/tests" if "/" in room else f"tests/{room}"


def folders_of(names: list[str]) -> list[str]:
    """Return the folders of tiers and rooms."""
    rooms = [room for name in names for room in (TIERS[name].rooms if name in TIERS else (name,))]
    return list(dict.fromkeys(map(folder_of, rooms)))


def table() -> str:
    """Return the tiers and rooms as text."""
    lines = ["tier       seconds  what its tests start, and its rooms (where they are more than the tier's name)", ""]
    for name, tier in TIERS.items():
        lines.append(f"{name:<10} {tier.seconds:7d}  {tier.about}")
        if tier.rooms != (name,):
            lines += textwrap.wrap(" ".join(tier.rooms), 118, initial_indent=" " * 20, subsequent_indent=" " * 20)
    return "\n".join([*lines, "", f"quick tiers: {', '.join(QUICK)}"])


def changed() -> set[str]:
    """Return the files that differ from the branch main, also those that git does not know yet."""

    def git(*arguments: str) -> list[str]:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
        return done.stdout.splitlines()

    if shutil.which("git") is None:
        return set()
    base = git("merge-base", "HEAD", "main") or ["HEAD"]
    return {*git("diff", "--name-only", "--diff-filter=d", *base), *git("ls-files", "--others", "--exclude-standard")}


def module_name(path: str) -> str:
    """Return the name by which a file's module is imported; helpers of tests by their last part."""
    parts = Path(path.removesuffix("/__init__.py")).with_suffix("").parts
    if "tests" in parts:  # helpers lie in folders that pytest's configuration puts on the path
        return parts[-1]
    return ".".join(parts[2:] if parts[0] == "plugins" else parts)


def imported(path: Path) -> Iterator[str]:
    """Yield the names of the modules that a file imports, and what may be modules."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def tests_of_changes() -> list[str]:
    """Return the test files that changed, and those of the quick tiers that import a module that did."""
    files = {path for path in changed() if path.endswith(".py")}
    modules = set(map(module_name, files))
    quick = [path for folder in folders_of([*QUICK]) for path in sorted((ROOT / folder).glob("test_*.py"))]
    touched = {str(path.relative_to(ROOT)) for path in quick if modules.intersection(imported(path))}
    edited = {path for path in files if Path(path).name.startswith("test_") and not path.startswith(NOT_FIRST)}
    return sorted(edited | touched)


def run_quick(arguments: list[str]) -> list[int]:
    """Run the tests of what changed, then the other tests of the quick tiers."""
    first = tests_of_changes()
    others = [*folders_of([*QUICK]), *(f"--ignore={path}" for path in first), *QUICK_OPTIONS]
    statuses = [step([*PYTEST, *first, *arguments])] if first else []
    return [*statuses, step([*PYTEST, *others, *arguments])]


def start_build() -> "subprocess.Popen[bytes] | None":
    """Build Kubernetes beside the other steps, with the lowest priority; None if this machine cannot or has it.

    A failure is left to the tests, which try once more: there is one message then, and it is theirs.
    """
    if os.geteuid() != 0 or not is_there("apt-get"):
        return None
    return subprocess.Popen(["nice", "-n", "19", str(ROOT / "tests" / "k8s" / "cluster.sh"), "build"])


def run_beside_others(arguments: list[str]) -> int:
    """Run tests in several processes; return 0 if each passed, there or by itself."""
    (CACHE / FAILED_TESTS).unlink(missing_ok=True)  # it may name tests of earlier runs
    return try_again(step([*PYTEST, *arguments]), arguments, CACHE)


def try_again(status: int, arguments: list[str], cache: Path) -> int:
    """Run the tests that failed once more, one after the other, if they are few; return 0 if each passes now.

    A machine that several tests share is sometimes too slow for one of them. The output names them: a test that needs
    this should wait for what it expects.
    """
    if status != TESTS_FAILED:
        return status
    failed = json.loads((cache / FAILED_TESTS).read_bytes())
    if len(failed) > MAX_TRIED_AGAIN:
        return status
    print("Failed beside others, tried once more:", *failed, sep="\n  ", flush=True)
    return step(["-m", "pytest", *arguments, "--last-failed", "-n", "0"])


def run_named(names: list[str], arguments: list[str]) -> list[int]:
    """Run the tests of tiers and rooms, those on clusters after all others."""
    folders = folders_of(names)
    others = [folder for folder in folders if folder not in ON_CLUSTERS]
    clusters = [folder for folder in folders if folder in ON_CLUSTERS]
    statuses = [step([*PYTEST, *others, *arguments])] if others else []
    return statuses + ([run_beside_others([*IN_MORE_PROCESSES, *clusters, *arguments])] if clusters else [])


def run_on_clusters() -> list[int]:
    """Run the tests on clusters, and others in the time in which these wait; print the output of those at the end."""
    arguments = [*BESIDE_CLUSTERS_OPTIONS, *folders_of([*BESIDE_CLUSTERS])]
    cache = CACHE / "beside_clusters"
    (cache / FAILED_TESTS).unlink(missing_ok=True)
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        command = ["nice", "-n", "19", str(PYTHON), *PYTEST, *arguments]
        with subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT) as others:
            try:
                status = run_beside_others([*IN_MORE_PROCESSES, *ON_CLUSTERS])
                others.wait()
            finally:
                others.terminate()
        output.seek(0)
        print("+ python", *PYTEST, *arguments)
        print(output.read(), flush=True)
    return [status, try_again(others.returncode, arguments, cache)]


def run_everything(build: "subprocess.Popen[bytes] | None") -> list[int]:
    """Run the checks and all tests.

    Args:
        build: What `start_build` has returned.
    """
    ignored = [f"--ignore={folder}" for folder in (*ON_CLUSTERS, *folders_of([*BESIDE_CLUSTERS]))]
    statuses = [*map(step, CHECKS), run_beside_others(ignored)]
    if build is not None:
        build.wait()
    return statuses + run_on_clusters()


def leading_names(arguments: list[str]) -> list[str]:
    """Return the names of tiers and rooms that the arguments begin with."""
    known = {*TIERS, *(room for tier in TIERS.values() for room in tier.rooms)}
    unknown = next((index for index, word in enumerate(arguments) if word not in known), len(arguments))
    return arguments[:unknown]


def run(arguments: list[str], build: "subprocess.Popen[bytes] | None") -> list[int]:
    """Run what the command line asks for; return the exit codes of all steps."""
    if arguments[:1] == ["--quick"]:
        return [*map(step, CHECKS), *run_quick(arguments[1:])]
    if names := leading_names(arguments):
        return run_named(names, arguments[len(names) :])
    if arguments:
        return [step([*PYTEST, *arguments])]
    return run_everything(build)


def main() -> int:
    """Return 0 when every step passed, else the exit code of the first that did not."""
    arguments = sys.argv[1:]
    if {"-h", "--help"} & {*arguments}:
        print(f"{__doc__}\n{table()}")
        return 0
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # a container image may set it; every process would compile again
    build = None if arguments else start_build()  # first, because pip and apt leave much of the cores' time unused
    services = threading.Thread(target=install_services)
    services.start()
    status = install()
    services.join()
    if status:
        return status
    # All steps run, so that one look at the output shows everything that is wrong.
    return next((status for status in run(arguments, build) if status), 0)


if __name__ == "__main__":
    sys.exit(main())
