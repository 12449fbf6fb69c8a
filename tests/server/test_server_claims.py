"""Tests of claims over HTTP: many at once, unusual offers, and the fields of claimed jobs."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sample_records import NODE

OFFER = {"num_cpus": 4, "memory_gb": 8, "num_gpus": 0, "num_nodes": 1}
CLIENTS = 200


def path(workflow_id: int, limit: Any = 10) -> str:
    return f"/workflows/{workflow_id}/claim_jobs_based_on_resources/{limit}"


def test_two_hundred_clients_at_once_get_no_job_twice(api: Any) -> None:
    """By resources, as a queue and by exchange; in the end each job has been handed out once."""
    jobs = 600
    workflow_id = api.planned(jobs)
    nodes = [api.node(workflow_id) for _ in range(10)]
    together = threading.Barrier(CLIENTS)

    def client(number: int) -> list[int]:
        mine: list[int] = []
        together.wait()
        while True:
            if number % 3 == 0:
                found = api.ok("POST", path(workflow_id, 3), OFFER)["jobs"]
            elif number % 3 == 1:
                found = api.ok("POST", f"/workflows/{workflow_id}/claim_next_jobs", limit=2)["jobs"]
            else:
                found = api.exchange(workflow_id, nodes[number % 10], slots=2)["jobs"]
            if not found:
                return mine
            mine += [job["id"] for job in found]

    with ThreadPoolExecutor(CLIENTS) as pool:
        handed = [job_id for mine in pool.map(client, range(CLIENTS)) for job_id in mine]
    assert len(handed) == len(set(handed)) == jobs
    assert api.ok("GET", f"/workflows/{workflow_id}/job_counts")["counts"] == {"pending": jobs}


def test_a_claimed_job_says_all_that_a_runner_needs(api: Any) -> None:
    """Script, scheduler, handler, attempt, and what it writes."""
    workflow_id = api.workflow()
    mine = {"workflow_id": workflow_id}
    file_id = api.ok("POST", "/files", {**mine, "name": "f", "path": "/f"})["id"]
    data_id = api.ok("POST", "/user_data", {**mine, "name": "u"})["id"]
    handler = api.ok("POST", "/failure_handlers", {**mine, "name": "h", "rules": "[]"})["id"]
    scheduler = {**mine, "name": "s", "account": "a", "nodes": 1, "walltime": "1:0:0"}
    job = {
        **mine,
        "name": "j",
        "command": "c",
        "invocation_script": "s",
        "supports_termination": True,
        "cancel_on_blocking_job_failure": False,
        "output_file_ids": [file_id],
        "output_user_data_ids": [data_id],
        "failure_handler_id": handler,
        "scheduler_id": api.ok("POST", "/slurm_schedulers", scheduler)["id"],
    }
    job_id = api.ok("POST", "/jobs", job)["id"]
    api.ok("POST", f"/workflows/{workflow_id}/initialize_jobs")
    (claimed,) = api.ok("POST", f"/workflows/{workflow_id}/claim_next_jobs")["jobs"]
    assert {**job, "id": job_id, "status": "pending", "attempt_id": 1}.items() <= claimed.items()
    assert api.ok("GET", f"/jobs/{job_id}")["status"] == "pending"


@pytest.mark.parametrize(
    ("limit", "offer", "query", "refusal"),
    [
        ("x", {}, {}, (400, "path: limit: 'x' is not an integer")),
        (-1, {}, {}, (400, "limit: -1 is negative")),
        (1, {"num_cpus": -1}, {}, (400, ">= 0")),
        (1, {"num_cpus": 2**63}, {}, (400, "body: ")),
        (1, {"memory_gb": 1e300}, {}, (400, "body: ")),
        (1, {"num_gpus": "2"}, {}, (400, "num_gpus")),
        (1, {"num_nodes": None}, {}, (400, "num_nodes")),
        (1, {"time_limit": "1 hour"}, {}, (422, "time_limit: '1 hour' is not an ISO 8601 duration")),
        (1, {}, {"sort_method": "best"}, (422, "unknown sort method 'best'; known: gpus_runtime_memory")),
        (1, {}, {"strict_scheduler_match": "perhaps"}, (400, "neither true nor false")),
    ],
)
def test_an_odd_offer_is_refused(api: Any, limit: Any, offer: Any, query: Any, refusal: tuple[int, str]) -> None:
    """With what is wrong; no job is handed out."""
    workflow_id = api.planned(1)
    answer = api.call("POST", path(workflow_id, limit), OFFER | offer, **query)
    assert (answer.status, refusal[1] in answer.message) == (refusal[0], True), answer
    assert api.ok("GET", f"/workflows/{workflow_id}/job_counts")["counts"] == {"ready": 1}


def test_time_that_is_left_is_compared(api: Any) -> None:
    """A job that may take longer than the runner has is not handed out to it."""
    workflow_id = api.workflow()
    needs = {"workflow_id": workflow_id, "name": "n", "runtime": "PT1H"}
    needs_id = api.ok("POST", "/resource_requirements", needs)["id"]
    job = {"workflow_id": workflow_id, "name": "j", "command": "c", "resource_requirements_id": needs_id}
    api.ok("POST", "/jobs", job)
    api.ok("POST", f"/workflows/{workflow_id}/initialize_jobs")
    for time_limit, count in (("PT59M", 0), ("PT1H", 1)):
        assert len(api.ok("POST", path(workflow_id), {**OFFER, "time_limit": time_limit})["jobs"]) == count


def test_more_jobs_than_a_batch_holds_are_refused(api: Any) -> None:
    """With the limit; nothing of the batch is kept."""
    workflow_id = api.workflow()
    job = {"workflow_id": workflow_id, "name": "j", "command": "c"}
    answer = api.call("POST", "/bulk_jobs", {"jobs": [job] * 10_001})
    assert (answer.status, answer.message) == (422, "a batch holds at most 10000 jobs, this one has 10001")
    assert api.ok("GET", f"/workflows/{workflow_id}/job_ids")["count"] == 0
    assert len(api.ok("POST", "/bulk_jobs", {"jobs": [job] * 10_000})["jobs"]) == 10_000
    assert api.ok("POST", "/bulk_jobs", {"jobs": []}) == {"jobs": []}


def test_a_job_of_a_batch_that_does_not_fit_is_named(api: Any) -> None:
    """By its place; unknown fields of any job are named in a warning."""
    workflow_id = api.workflow()
    job = {"workflow_id": workflow_id, "name": "j", "command": "c"}
    answer = api.call("POST", "/bulk_jobs", {"jobs": [job, {**job, "command": 5}]})
    assert (answer.status, answer.message.startswith("jobs[1]: body: command: ")) == (400, True)
    warned = api.call("POST", "/bulk_jobs", {"jobs": [job, {**job, "colour": "red"}]})
    assert warned.headers["warning"] == '299 torc "ignored: colour"'


def test_a_node_may_say_nothing_of_being_active(api: Any) -> None:
    """It counts as not active, in lists and totals."""
    workflow_id = api.workflow()
    node = api.node(workflow_id)
    silent = {**NODE, "workflow_id": workflow_id, "hostname": "silent", "is_active": None}
    silent_id = api.ok("POST", "/compute_nodes", silent)["id"]
    assert "is_active" not in api.ok("GET", f"/compute_nodes/{silent_id}")
    for active, expected in ((True, node), (False, silent_id)):
        page = api.ok("GET", "/compute_nodes", workflow_id=workflow_id, is_active=active)
        assert ([item["id"] for item in page["items"]], page["total_count"]) == ([expected], 1)


def test_remote_workers_are_addresses(api: Any) -> None:
    """Sorted, each once; what is no address is refused; a slash in a path is none."""
    one = f"/workflows/{api.workflow()}/remote_workers"
    named = api.ok("POST", one, ["b", "u@a:22", "b", "[::1]:22"])
    assert [worker["worker"] for worker in named] == ["[::1]:22", "b", "u@a:22"]
    api.ok("POST", one, ["b", "c"])
    assert [worker["worker"] for worker in api.ok("GET", one)] == ["[::1]:22", "b", "c", "u@a:22"]
    for wrong in ("", "a b", "u@", "a:port", "u@v@w", "a/b"):
        answer = api.call("POST", one, [wrong])
        assert (answer.status, "expected [user@]host[:port]" in answer.message) == (422, True)
    assert api.ok("DELETE", f"{one}/u%40a%3A22")["worker"] == "u@a:22"
    gone = api.call("DELETE", f"{one}/u@a:22")
    assert (gone.status, gone.message) == (404, "Remote worker not found with ID: u@a:22")
