"""A plan in parts, one line each, is stored as the same plan in one document, or refused as a whole."""

import http.client
import json
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest
from server_child import ServerChild
from waiting import eventually

from torc_framework.models.barriers import Barrier
from torc_framework.models.plan import Plan, PlannedJob
from torc_framework.models.plan_parts import PLAN_LINES, JobColumns, PlanParts, PlanSlice, parts_of, plan_lines
from torc_framework.models.records import FileRecord, WorkflowRecord
from torc_framework.server.dispatch.large_bodies import INLINE_BYTES, THREAD_LINE_BYTES

LARGE = 12_000
"""Jobs of a plan whose body is for a thread or a worker."""
PATH = "/workflows/from_plan"
Lines = list[dict[str, Any]]


def a_plan(jobs: int) -> Plan:
    """Return a plan with dependencies, a barrier and files."""
    return Plan(
        WorkflowRecord(name="in parts", user="u"),
        [PlannedJob(f"job_{n}", f"true {n}", input_files=[0] if n % 3 else None) for n in range(jobs)],
        dependencies=[(n, n - 4) for n in range(6, jobs)],
        barriers=[Barrier([0, 1], [2, 3, 5])],
        files=[FileRecord(workflow_id=0, name="f", path="/f")],
    )


def lines_of(plan: Plan, size: int = 1000) -> bytes:
    """Return the body of a plan in slices of a size."""
    parts = parts_of(plan)
    flat = [number for pair in plan.dependencies for number in pair]
    slices = [PlanSlice(dependencies=flat[start : start + 2 * size]) for start in range(0, len(flat), 2 * size)]
    slices += [
        PlanSlice(jobs=JobColumns.of(plan.jobs[start : start + size])) for start in range(0, len(plan.jobs), size)
    ]
    return b"".join(plan_lines(PlanParts(parts.head, iter(slices))))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerChild]:
    """A server with workers for large bodies."""
    with ServerChild(tmp_path_factory.mktemp("plans"), "--log-level", "warning") as child:
        yield child
        assert child.stop() == 0


@pytest.fixture
def upload(shared: ServerChild, make_api: Any) -> Any:
    """A client that sends plans in parts."""
    return make_api(shared.url, {"Content-Type": PLAN_LINES})


def content_of(api: Any, workflow_id: int) -> Any:
    """Return all of a workflow, with positions in place of ids."""
    document = api.ok("GET", f"/workflows/{workflow_id}/export")
    first = document["jobs"][0]["id"]
    jobs = [
        (job["name"], job["command"], job["status"], [on - first for on in job.get("depends_on_job_ids") or ()])
        for job in document["jobs"]
    ]
    return jobs, [file["name"] for file in document["files"]], document["workflow"]["name"]


def for_worker(body: bytes) -> bytes:
    """Return a body with the same values and a long first line."""
    head, rest = body.split(b"\n", 1)
    return head + b" " * (2 * THREAD_LINE_BYTES) + b"\n" + rest


@pytest.mark.parametrize(("jobs", "makes_long_line"), [(7, False), (LARGE, False), (LARGE, True)])
def test_both_bodies_make_the_same_workflow(upload: Any, make_api: Any, jobs: int, makes_long_line: bool) -> None:
    """Whether the server itself, a thread for large bodies or a worker stores the plan."""
    api, plan = make_api(upload.url), a_plan(jobs)
    body = for_worker(lines_of(plan)) if makes_long_line else lines_of(plan)
    assert (len(body) > INLINE_BYTES) == (jobs == LARGE)
    document = api.raw("POST", f"{PATH}?initialize=true", msgspec.json.encode(plan))
    lines = upload.raw("POST", f"{PATH}?initialize=true", body)
    assert (document.status, lines.status) == (200, 200), lines
    ids = document.body.pop("id"), lines.body.pop("id")
    assert document.body == lines.body
    assert content_of(api, ids[0]) == content_of(api, ids[1])


def _without_last(lines: Lines) -> Lines:
    return lines[:-1]


def _with_more_jobs(lines: Lines) -> Lines:
    return [*lines, {"jobs": {"name": ["one more"], "command": ["true"]}}]


def _jobs_first(lines: Lines) -> Lines:
    return [lines[0], *reversed(lines[1:])]


def _without_head(lines: Lines) -> Lines:
    return lines[1:]


def _head_twice(lines: Lines) -> Lines:
    return [lines[0], *lines]


def _endless(lines: Lines) -> Lines:
    return [{**lines[0], "job_count": 2**31 - 1}, *lines[1:]]


def _negative(lines: Lines) -> Lines:
    return [{**lines[0], "job_count": -1}, *lines[1:]]


def _half_a_pair(lines: Lines) -> Lines:
    return [lines[0], {"dependencies": [1]}, *lines[1:]]


def _far_position(lines: Lines) -> Lines:
    return [lines[0], {"dependencies": [10**15, 0]}, *lines[1:]]


def _repeated_pair(lines: Lines) -> Lines:
    return [lines[0], {"dependencies": [6, 2]}, *lines[1:]]


def _cycle(lines: Lines) -> Lines:
    return [{**lines[0], "dependency_count": lines[0]["dependency_count"] + 1}, {"dependencies": [2, 6]}, *lines[1:]]


def _same_name(lines: Lines) -> Lines:
    jobs = lines[-1]["jobs"]
    return [*lines[:-1], {"jobs": {**jobs, "name": [*jobs["name"][:-1], "job_0"]}}]


def _wrong_type(lines: Lines) -> Lines:
    return [*lines[:-1], {"jobs": {"name": [1], "command": ["true"]}}]


def _short_column(lines: Lines) -> Lines:
    return [*lines[:-1], {"jobs": {"name": ["a", "b"], "command": ["true", "true"], "shell": ["sh"]}}]


def _nul(lines: Lines) -> Lines:
    return [*lines[:-1], {"jobs": {"name": ["a\0"], "command": ["true"]}}]


WRONG: list[tuple[Callable[[Lines], Lines], int, str]] = [
    (_without_last, 422, "head announces"),
    (_with_more_jobs, 422, "head announces"),
    (_jobs_first, 422, "dependencies: they must come before the jobs"),
    (_without_head, 422, "line 1: .*job_count|line 1: .*missing required field"),
    (_head_twice, 422, "line 2: .*unknown field"),
    (_endless, 422, "bytes cannot hold 2147483647 jobs"),
    (_negative, 422, "line 1: .*job_count"),
    (_half_a_pair, 422, "middle of a pair"),
    (_far_position, 422, "dependencies: position 1000000000000000 is not among"),
    (_repeated_pair, 422, "a pair occurs twice"),
    (_cycle, 422, "cycle; among its jobs or waiting for it: job_"),
    (_same_name, 422, "1 job name.s. occur more than once"),
    (_wrong_type, 422, "line .*Expected `str`"),
    (_short_column, 422, "a slice has 2 names and 1 values of shell"),
    (_nul, 400, "NUL"),
]


@pytest.mark.parametrize("jobs", [9, LARGE])
@pytest.mark.parametrize("shape", [bytes, for_worker])
@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong[0].__name__)
def test_a_wrong_body_is_refused_as_a_whole(
    upload: Any, jobs: int, shape: Callable[[bytes], bytes], wrong: tuple[Callable[[Lines], Lines], int, str]
) -> None:
    """With the reason, and nothing of it is stored."""
    change, status, reason = wrong
    before = upload.ok("GET", "/workflows", limit=1)["total_count"]
    lines = change([json.loads(line) for line in lines_of(a_plan(jobs)).splitlines()])
    answer = upload.raw("POST", PATH, shape(b"".join(json.dumps(line).encode() + b"\n" for line in lines)))
    assert answer.status == status, answer
    assert re.search(reason, answer.message), answer
    assert upload.ok("GET", "/workflows", limit=1)["total_count"] == before


@pytest.mark.parametrize("body", [b"", b"\n", b"{", b"[]\n", b"\xff\n"])
def test_a_body_without_a_head_is_refused(upload: Any, body: bytes) -> None:
    answer = upload.raw("POST", PATH, body)
    assert answer.status in (400, 422), answer
    assert "body: line" in answer.message


def test_a_cut_line_is_refused(upload: Any) -> None:
    answer = upload.raw("POST", PATH, lines_of(a_plan(LARGE))[:-100])
    assert answer.status == 400, answer
    assert "body: line 25: " in answer.message


def test_an_upload_that_ends_early_stores_nothing(upload: Any) -> None:
    """The client closes its connection before the end of the body."""
    before = upload.ok("GET", "/workflows", limit=1)["total_count"]
    body, parts = lines_of(a_plan(LARGE)), urlsplit(upload.url)
    head = f"POST {parts.path}{PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: {PLAN_LINES}\r\n"
    with socket.create_connection((parts.hostname, parts.port)) as sock:
        sock.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body[:-1])
    assert upload.call("GET", "/ping").status == 200
    assert upload.ok("GET", "/workflows", limit=1)["total_count"] == before


@pytest.mark.parametrize("delay_s", [0.2, 0.8])
@pytest.mark.parametrize("whose", ["worker", "server"])
def test_a_kill_leaves_the_whole_plan_or_nothing(tmp_path: Path, make_api: Any, whose: str, delay_s: float) -> None:
    """Of the worker or of the server, at any moment; the next plan is stored."""
    body = for_worker(lines_of(a_plan(40_000)))
    with ServerChild(tmp_path, "--log-level", "error") as child:
        api, answers = make_api(child.url, {"Content-Type": PLAN_LINES}), []
        sender = threading.Thread(target=lambda: answers.append(_answer(api, body)))
        sender.start()
        while not (workers := _workers(child.process.pid)) and sender.is_alive():
            time.sleep(0.01)
        time.sleep(delay_s)
        for pid in workers:
            os.kill(pid, signal.SIGKILL)
        if whose == "server":
            child.kill()
            child.start()
        sender.join()
        while not _answers_ping(api):
            time.sleep(0.05)
        stored = api.ok("GET", "/workflows")["items"]
        if answers[0] is not None:
            assert answers[0].status in (200, 413)
            assert [each["id"] for each in stored] == ([answers[0].body["id"]] if answers[0].status == 200 else [])
        assert all(api.ok("GET", "/jobs", workflow_id=each["id"], limit=1)["total_count"] == 40_000 for each in stored)
        eventually(lambda: not {*workers} & {*_workers(child.process.pid)})
        assert api.raw("POST", PATH, body).status == 200


@pytest.mark.parametrize("delay_s", [0.05, 0.3])
def test_a_kill_while_a_thread_stores_leaves_the_whole_plan_or_nothing(
    tmp_path: Path, make_api: Any, delay_s: float
) -> None:
    body = lines_of(a_plan(40_000))
    with ServerChild(tmp_path, "--log-level", "error") as child:
        api = make_api(child.url, {"Content-Type": PLAN_LINES})
        sender = threading.Thread(target=_answer, args=(api, body))
        sender.start()
        time.sleep(delay_s)
        child.kill()
        sender.join()
        child.start()
        eventually(lambda: _answers_ping(api))
        stored = api.ok("GET", "/workflows")["items"]
        assert all(api.ok("GET", "/jobs", workflow_id=each["id"], limit=1)["total_count"] == 40_000 for each in stored)
        assert api.raw("POST", PATH, body).status == 200


def _answer(api: Any, body: bytes) -> Any:
    """Return the answer to a plan; None if the server was killed before it answered."""
    try:
        return api.raw("POST", PATH, body)
    except (OSError, http.client.HTTPException):
        return None


def _answers_ping(api: Any) -> bool:
    try:
        return bool(api.call("GET", "/ping").status == 200)
    except OSError:
        return False


def _workers(server: int) -> list[int]:
    """Return the server's processes for large bodies."""
    found = []
    for children in Path(f"/proc/{server}/task").glob("*/children"):
        for pid in map(int, _text(children).split()):
            if "large_body_worker" in _text(Path(f"/proc/{pid}/cmdline")):
                found.append(pid)
    return found


def _text(path: Path) -> str:
    """Return the text of a file of a process; empty if the process or thread has ended."""
    try:
        return path.read_text()
    except OSError:
        return ""
