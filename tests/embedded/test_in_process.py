"""Reads without a server: the answers are those of a server, and everything else goes to one."""

import json
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from programs import isolated_environment

from torc_framework.client import TorcClient
from torc_framework.client.http.transport import Transport
from torc_framework.embedded.server import EmbeddedServer
from torc_framework.errors import ApiError
from torc_framework.in_process import InProcessReads, open_to_read
from torc_framework.models.plan import Plan, PlannedJob
from torc_framework.models.records import UserDataRecord, WorkflowRecord
from torc_framework.server.routes.reads import read_endpoints
from torc_framework.server.routes.table import all_endpoints
from torc_framework.store.database.opening import open_database
from torc_framework.store.errors import DatabaseError

READS = [each for each in all_endpoints() if each.method == "GET" and each.body is None]
TIMES_OF_REQUESTS = ("exported_at", "at", "from_s", "to_s")
"""Fields that hold the time of the request."""
QUERIES: list[dict[str, Any]] = [{}, {"workflow_id": 1}, {"workflow_id": 1, "limit": 2, "offset": 1}, {"limit": "x"}]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    """A server on a database with a workflow of a few jobs."""
    with EmbeddedServer(tmp_path_factory.mktemp("own") / "torc.db") as server:
        jobs = [PlannedJob(name=f"j{n}", command="true") for n in range(5)]
        with TorcClient(server.url) as client:
            client.create_from_plan(Plan(WorkflowRecord(name="some", user="u"), jobs))
            client.create(UserDataRecord(workflow_id=1, name="d", data={"ä": [1.5, None]}))
        yield server


def no_server() -> str:
    """Fail, because a server is asked for."""
    raise AssertionError("a server is started")


@pytest.fixture
def reads(server: EmbeddedServer) -> Iterator[InProcessReads]:
    """Reads of the server's database in this process."""
    assert isinstance(server.database, Path)
    database = open_to_read(server.database)
    assert database is not None
    made = InProcessReads(database, no_server)
    yield made
    made.close()


def outcome(sender: Any, path: str, query: dict[str, Any]) -> Any:
    """Return the response to a read, or the status and the reason of the refusal."""
    try:
        answer = json.loads(sender.request("GET", path, query=query))
    except ApiError as error:
        return error.status, str(error)
    if isinstance(answer, dict):
        for name in TIMES_OF_REQUESTS:
            answer.pop(name, None)
    return answer


@pytest.mark.parametrize("endpoint", READS, ids=lambda each: each.path)
def test_an_answer_is_that_of_a_server(server: EmbeddedServer, reads: InProcessReads, endpoint: Any) -> None:
    """With any query, of records that exist and of others, and also when it is refused."""
    transport = Transport(server.url, timeout=60)
    for number in ("1", "3", "77", "-1", "x", str(2**70)):
        path = re.sub(r"\{\w+\}", number, endpoint.path)
        for query in QUERIES:
            assert outcome(reads, path, query) == outcome(transport, path, query), (path, query)


def test_what_a_server_commits_is_read(server: EmbeddedServer, reads: InProcessReads) -> None:
    """Each read sees the state of its own time."""
    with TorcClient(server.url) as client:
        made = client.create(UserDataRecord(workflow_id=1, name="late", data=1))
        here = TorcClient.over(reads)
        assert here.get(UserDataRecord, made.id or 0) == made
        client.delete(UserDataRecord, made.id or 0)
        with pytest.raises(ApiError, match="not found"):
            here.get(UserDataRecord, made.id or 0)


def test_a_change_goes_to_a_server(server: EmbeddedServer) -> None:
    """One is started for the first change and used for all; so are requests that no endpoint of the table answers."""
    started = []
    assert isinstance(server.database, Path)
    database = open_to_read(server.database)
    assert database is not None

    def start() -> str:
        started.append(server.url)
        return server.url

    with TorcClient.over(InProcessReads(database, start)) as client:
        made = client.create(UserDataRecord(workflow_id=1, name="mine", data=1))
        assert started == [server.url]
        assert client.ping() == {"status": "ok"}
        client.delete(UserDataRecord, made.id or 0)
        assert client.environment["TORC_API_URL"] == server.url
    assert started == [server.url]


def test_nothing_is_written(server: EmbeddedServer) -> None:
    """The connections refuse changes."""
    assert isinstance(server.database, Path)
    database = open_to_read(server.database)
    assert database is not None
    with closing(database), pytest.raises(DatabaseError, match="readonly"), database.write() as tx:
        tx.connection.exec_driver_sql("DELETE FROM workflow")


def older(path: Path) -> None:
    """Make a database of an older version."""
    open_database(str(path)).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0001'")
        connection.commit()


def foreign(path: Path) -> None:
    """Make a database of another program."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE other (id)")


MADE: dict[str, Callable[[Path], object]] = {
    "missing": lambda _path: None,
    "older": older,
    "another program's": foreign,
    "empty": lambda path: path.touch(),
    "no database": lambda path: path.write_text("words " * 1000),
    "a folder": lambda path: path.mkdir(),
}


@pytest.mark.parametrize("kind", MADE)
def test_a_server_judges_other_databases(tmp_path: Path, kind: str) -> None:
    """They are neither made nor changed nor refused here."""
    path = tmp_path / "torc.db"
    MADE[kind](path)
    before = path.read_bytes() if path.is_file() else None
    assert open_to_read(path) is None
    assert (path.read_bytes() if path.is_file() else None) == before


LIST = """
import subprocess, sys
from torc_framework.cli.programs.torc import main
subprocess.Popen = None
sys.exit(main(sys.argv[1:]))
"""


def test_a_command_that_reads_starts_no_process(tmp_path: Path) -> None:
    """Unless the database has to be made first."""
    environment = {**isolated_environment(tmp_path / "home"), "TORC_DATABASE": str(tmp_path / "torc.db")}
    torc = [sys.executable, "-m", "torc_framework.cli.programs.torc"]
    first = subprocess.run([*torc, "workflows", "list"], env=environment, capture_output=True, text=True, check=True)
    for words in (["workflows", "list"], ["status", "-f", "json"]):
        call = [sys.executable, "-c", LIST, *words]
        done = subprocess.run(call, env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
    call = [sys.executable, "-c", LIST, "workflows", "list"]
    done = subprocess.run(call, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == first.stdout


def test_a_path_has_the_endpoint_of_the_server() -> None:
    """All endpoints that read are found, and of several that fit a path the same one is called."""
    declared = [each for each in READS if not each.changes]
    found = [*read_endpoints()]
    assert sorted(each.path for each in found) == sorted(each.path for each in declared)
    for endpoint in declared:
        path = re.sub(r"\{\w+\}", "1", endpoint.path)
        fitting = [[each.path for each in order if is_of(path, each.path)] for order in (found, declared)]
        assert fitting[0][0] == fitting[1][0]


def is_of(path: str, declared: str) -> bool:
    """Return whether a path is one of those that an endpoint declares."""
    return re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", declared), path) is not None


READ = """
import sys
from pathlib import Path
from torc_framework.in_process import InProcessReads, open_to_read
reads = InProcessReads(open_to_read(Path(sys.argv[1])), None)
reads.request("GET", "/jobs", query={"workflow_id": 1})
print(*sys.modules)
"""


def test_a_read_imports_only_what_it_calls(server: EmbeddedServer) -> None:
    """Neither changes of the store nor HTTP."""
    call = [sys.executable, "-c", READ, str(server.database)]
    imported = subprocess.run(call, capture_output=True, text=True, check=True).stdout.split()
    assert "torc_framework.server.routes.records" in imported
    for module in ("torc_framework.server.routes.workflows", "torc_framework.store.workflows.plans", "starlette"):
        assert module not in imported
