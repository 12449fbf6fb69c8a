"""Images of torc and of PostgreSQL for the test cluster, which reaches no registry.

An image is a root file system: the Python of the cluster's own image with the packages of the project, and the programs
of PostgreSQL with the libraries of this machine. Each is built once for its content: the names of the images have its
digest, and the parts that take long are kept in the folder of the cluster's programs.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from archives import unpack
from k8s_cluster import RUN, script

ROOT: Final = Path(__file__).parents[2]
CACHE: Final = Path(os.environ.get("K8S_CACHE", "/var/tmp/k8s-lab"))
PYTHON_VERSION: Final = "3.11"
"""Python of the cluster's image, that of Debian 12."""
SITE: Final = f"usr/local/lib/python{PYTHON_VERSION}/dist-packages"
_PROGRAMS: Final = {
    "torc": "torc_framework.cli.programs.torc",
    "torc-server": "torc_framework.cli.programs.torc_server",
    "torc-htpasswd": "torc_framework.cli.programs.torc_htpasswd",
}
_ENTRYPOINT: Final = """#!/bin/sh
# What the image "postgres" does at its start, as far as the manifests use it.
set -e
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    printf '%s' "$POSTGRES_PASSWORD" >/tmp/password
    initdb --auth-local=trust --auth-host=scram-sha-256 --username="$POSTGRES_USER" --pwfile=/tmp/password \\
        --encoding=UTF8 --no-locale --no-sync -D "$PGDATA"
    rm /tmp/password
    echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
    if [ "$POSTGRES_DB" != postgres ]; then
        echo "CREATE DATABASE \\"$POSTGRES_DB\\"" | postgres --single -D "$PGDATA" postgres
    fi
fi
exec postgres -D "$PGDATA" -c listen_addresses='*'
"""


def torc_image() -> str:
    """Return the name of an image with ``torc`` and ``torc-server``, built and loaded if it is not there."""
    sources = [
        path
        for folder in (ROOT / "torc_framework", ROOT / "plugins" / "local" / "torc_local")
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    ]
    return _image("torc", _digest([Path(__file__), ROOT / "pyproject.toml", *sources]), _build_torc)


def postgres_image() -> str:
    """Return the name of an image that starts as the image ``postgres`` does."""
    return _image("postgres", _digest([Path(__file__), _postgres_programs() / "postgres"]), _build_postgres)


def _image(name: str, digest: str, build: Callable[[Path], None]) -> str:
    """Load an image unless the cluster has it; return its name."""
    tagged = f"{name}-{digest}"
    marks = RUN / "test-images"
    marks.mkdir(exist_ok=True)
    with (CACHE / f"{name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (marks / tagged).exists():
            with tempfile.TemporaryDirectory() as folder:
                build(Path(folder))
                entrypoint = '["/usr/local/bin/docker-entrypoint.sh"]' if name == "postgres" else "null"
                script("image", tagged, folder, entrypoint)
            (marks / tagged).touch()
    return f"localhost/{tagged}:1"


def _digest(files: list[Path]) -> str:
    """Return a digest of names and contents."""
    found = hashlib.sha256()
    for path in files:
        found.update(path.name.encode())
        found.update(path.read_bytes())
    return found.hexdigest()[:12]


# --- torc -----------------------------------------------------------------------------------------


def _build_torc(root: Path) -> None:
    unpack(CACHE / "python.tar", root)
    site = root / SITE
    shutil.copytree(_requirements(), site, dirs_exist_ok=True)
    plugin = ROOT / "plugins" / "local"
    _install(site, "--no-deps", "--no-build-isolation", str(ROOT), str(plugin))
    programs = root / "usr/local/bin"
    programs.mkdir(parents=True, exist_ok=True)
    for name, module in _PROGRAMS.items():
        path = programs / name
        path.write_text(f"#!/usr/bin/python3\nimport sys\nfrom {module} import main\nsys.exit(main())\n")
        path.chmod(0o755)
    _make_readable(root)


def _requirements() -> Path:
    """Return a folder with the third-party packages that torc and its PostgreSQL driver need, kept in the cache."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["postgres"]]
    wanted = sorted(each for each in wanted if not re.match(r"torc[-_]", each))
    folder = CACHE / f"torc-requirements-{hashlib.sha256(repr(wanted).encode()).hexdigest()[:12]}"
    if not folder.is_dir():
        with tempfile.TemporaryDirectory(dir=CACHE) as part:
            _install(Path(part, "site"), "--python-version", PYTHON_VERSION, "--only-binary=:all:", *wanted)
            Path(part, "site").rename(folder)
    return folder


def _install(folder: Path, *arguments: str) -> None:
    """Install packages into a folder."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    done = subprocess.run([*command, "--target", str(folder), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def _make_readable(root: Path) -> None:
    """Let every user read the files, as the containers run without root."""
    root.chmod(0o755)
    subprocess.run(["chmod", "-R", "a+rX", str(root / "usr/local")], check=True)


# --- PostgreSQL -------------------------------------------------------------------------------------


def _postgres_programs() -> Path:
    return sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))[-1].parent


def _build_postgres(root: Path) -> None:
    programs = _postgres_programs()
    version = programs.parent.name
    busybox = CACHE / "root" / "bin" / "busybox"
    for folder in (
        "bin",
        "tmp",
        "etc",
        "usr/local/bin",
        "usr/bin",
        "proc",
        "sys",
        "dev",
        "var/lib/postgresql/data",
        "var/run/postgresql",
    ):
        (root / folder).mkdir(parents=True, exist_ok=True)
    for folder in ("tmp", "var/run/postgresql"):
        (root / folder).chmod(0o1777)
    shutil.copy2(busybox, root / "bin/busybox")
    for name in ("sh", "rm", "cat"):
        (root / "bin" / name).symlink_to("busybox")
    for folder in (f"/usr/lib/postgresql/{version}", f"/usr/share/postgresql/{version}", "/usr/share/zoneinfo"):
        shutil.copytree(
            folder, root / folder[1:], symlinks=True, ignore=shutil.ignore_patterns("pgxs", "bitcode", "man")
        )
    for library in sorted({each for program in _binaries(programs) for each in _libraries(program)}):
        target = root / library[1:]
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(Path(library).resolve(), target)
    for name in ("postgres", "initdb", "pg_isready", "psql"):
        (root / "usr/bin" / name).symlink_to(f"/usr/lib/postgresql/{version}/bin/{name}")
    entrypoint = root / "usr/local/bin/docker-entrypoint.sh"
    entrypoint.write_text(_ENTRYPOINT)
    entrypoint.chmod(0o755)
    (root / "etc/passwd").write_text("root:x:0:0:root:/:/bin/sh\npostgres:x:999:999:postgres:/tmp:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\npostgres:x:999:\n")
    root.chmod(0o755)


def _binaries(programs: Path) -> Iterator[Path]:
    yield from (programs / name for name in ("postgres", "initdb", "pg_isready", "psql"))
    yield from (programs.parent / "lib").glob("*.so")


def _libraries(program: Path) -> list[str]:
    """Return the paths of the libraries that a program is linked with, and of its loader."""
    printed = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False).stdout
    return [path for path in re.findall(r"(/\S+) \(0x", printed) if os.path.exists(path)]  # noqa: PTH110 - a text from ldd
