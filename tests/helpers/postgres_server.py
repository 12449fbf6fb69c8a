"""A PostgreSQL server of one's own, thrown away in the end."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest
from waiting import eventually

OWNER = "torc"
MISSING = "PostgreSQL is not installed (Debian: apt-get install postgresql)"
_SPARED = ("fsync", "full_page_writes", "autovacuum")
"""What only costs time where nothing is to be kept."""


def installed_programs() -> Path | None:
    """Return the folder of the server's programs, which Debian keeps off the path."""
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return installed[-1].parent if installed else None


def _identity() -> dict[str, Any]:
    """Return who runs the server, as arguments of `subprocess`: it refuses to be root."""
    if os.geteuid() != 0:
        return {}
    user = next(user for name in ("postgres", "nobody") for user in pwd.getpwall() if user.pw_name == name)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


class PostgresServer:
    """A running server, reached by a socket in its own folder."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self._folder = folder
        self._command = [str(programs / "postgres"), "-D", str(folder / "data"), "-k", str(folder)]
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = count(1)
        subprocess.run(
            [programs / "initdb", "-A", "trust", "-U", OWNER, "-E", "UTF8", "--no-sync", "-D", folder / "data"],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            check=True,
            **_identity(),
        )
        self.start()

    def start(self) -> None:
        """Run it; return when it answers."""
        settings = ["-c", "listen_addresses=", *(word for name in _SPARED for word in ("-c", f"{name}=off"))]
        with (self._folder / "server.log").open("ab") as log:
            process = subprocess.Popen(
                [*self._command, *settings], cwd=self._folder, stdout=log, stderr=log, **_identity()
            )
        self._process = process
        eventually(lambda: self._answers() or process.poll() is not None, (self._folder / "server.log").read_text)
        assert process.poll() is None, (self._folder / "server.log").read_text()

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url("postgres")).close()
        except psycopg.OperationalError:
            return False
        return True

    def stop(self, *, fast: bool = False) -> None:
        """End it at once, as a power failure would.

        Args:
            fast: Roll back what is under way, tell the clients and write a checkpoint first (pg_ctl(1), "fast").
        """
        assert self._process is not None
        self._process.send_signal(signal.SIGINT if fast else signal.SIGQUIT)
        self._process.wait(60)

    def url(self, database: str) -> str:
        """Return the URL of one of its databases."""
        return f"postgresql://{OWNER}@/{database}?host={self._folder}"

    def execute(self, statement: str, database: str = "postgres") -> list[Any]:
        """Run one statement; return its rows."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return list(cursor) if cursor.description else []

    @contextmanager
    def database(self, options: str = "") -> Iterator[str]:
        """Make an empty database; yield its URL; drop it."""
        name = f"torc_{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name} {options}")
        try:
            yield self.url(name)
        finally:
            self._drop(name)

    def _drop(self, name: str) -> None:
        """Drop a database; one that cannot be dropped soon goes with the server.

        Dropping waits for every process of the server to take notice, also for one that waits for a
        client that a test has stopped.
        """
        impatient = psycopg.connect(self.url("postgres"), autocommit=True, options="-c statement_timeout=5000")
        with impatient as connection, suppress(psycopg.errors.QueryCanceled):
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    """Run a server; skip the test, or fail it in CI, where there is none."""
    programs = installed_programs()
    if programs is None:
        if os.environ.get("CI") == "true":
            pytest.fail(MISSING)
        pytest.skip(MISSING)
    folder = Path(tempfile.mkdtemp(prefix="torc-pg-"))  # a socket's path must be short
    if identity := _identity():
        os.chown(folder, identity["user"], identity["group"])
    try:
        server = PostgresServer(folder, programs)
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
