"""Tests of exchanges that wait: what wakes them, and that they do not delay other requests."""

import http.client
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
from waiting import eventually

LONG_S = 60.0
"""A wait that is longer than any test, seconds."""


@pytest.fixture
def waiting(api: Any, background: Any) -> Callable[..., Any]:
    """Start an exchange that waits, and return when the server holds it."""

    def start(workflow_id: int, node: int, **fields: Any) -> Any:
        seq = fields.pop("seq", 1)
        call = background(lambda: api.exchange(workflow_id, node, slots=1, wait_s=LONG_S, seq=seq, **fields))
        api.ok("GET", "/ping")
        return call

    return start


def chain(api: Any) -> tuple[int, int, int]:
    """Make two jobs of which the second waits for the first, which is claimed; return workflow, runner, first job."""
    workflow_id = api.planned(2, [[1, 0]])
    node = api.node(workflow_id)
    (job,) = api.exchange(workflow_id, node, slots=1)["jobs"]
    return workflow_id, node, job["id"]


def test_a_waiting_runner_gets_what_becomes_ready(api: Any, waiting: Any, report_end: Any) -> None:
    """The end that another runner reports hands the next job to the one that waits."""
    workflow_id, node, first = chain(api)
    idle = waiting(workflow_id, api.node(workflow_id))
    assert not idle.is_over
    api.exchange(workflow_id, node, ended=[report_end(first)])
    assert [job["name"] for job in idle.result()["jobs"]] == ["j1"]


def test_a_waiting_runner_hears_of_completion(api: Any, waiting: Any, report_end: Any) -> None:
    """The last end lets every runner go."""
    workflow_id, node, first = chain(api)
    idle = waiting(workflow_id, api.node(workflow_id))
    answer = api.exchange(workflow_id, node, ended=[report_end(first, "failed")])
    assert answer["is_complete"]
    assert idle.result()["is_complete"]


def test_a_runner_that_waited_hears_what_there_is_to_wait_for(api: Any, waiting: Any, report_end: Any) -> None:
    """The numbers are those at the end of its wait: since its begin the job it waited for has to be judged."""
    workflow_id, node, first = chain(api)
    idle_node = api.node(workflow_id)
    idle = waiting(workflow_id, idle_node, want_unfinished=True)
    api.exchange(workflow_id, node, ended=[report_end(first, "pending_failed")])
    assert not idle.is_over
    answer = api.exchange(workflow_id, idle_node, slots=1, seq=2, want_unfinished=True)  # it ends the wait
    assert answer["unfinished"] == idle.result()["unfinished"] == {"pending_failed": 1, "blocked": 1}
    assert api.exchange(workflow_id, idle_node, slots=1, seq=3)["unfinished"] is None


def test_a_waiting_runner_hears_of_the_cancel(api: Any, waiting: Any) -> None:
    """It has jobs to stop."""
    workflow_id, node, _ = chain(api)
    idle = waiting(workflow_id, node)
    api.ok("PUT", f"/workflows/{workflow_id}/cancel", {})
    assert idle.result()["is_canceled"]


def test_a_waiting_runner_hears_of_jobs_made_ready_by_others(api: Any, waiting: Any) -> None:
    """A released job and a new run wake the runners, as every change does that makes a job ready."""
    workflow_id, node, first = chain(api)
    idle = waiting(workflow_id, api.node(workflow_id))
    api.exchange(workflow_id, node, released=[first])
    assert [job["id"] for job in idle.result()["jobs"]] == [first]


def test_who_holds_unstarted_jobs_hears_of_those_who_wait(api: Any, waiting: Any) -> None:
    """A wait is named once, and not to a runner that has nothing to give."""
    workflow_id, node, first = chain(api)
    free = {"num_cpus": 3, "memory_bytes": 5, "num_gpus": 0, "num_nodes": 1}
    idle = waiting(workflow_id, api.node(workflow_id), free=free)
    (vacancy,) = eventually(lambda: api.exchange(workflow_id, node, unstarted=1)["vacancies"])
    assert (vacancy["slots"], vacancy["free"]["num_cpus"]) == (1, 3)
    assert api.exchange(workflow_id, node, unstarted=1)["vacancies"] == []
    other = waiting(workflow_id, api.node(workflow_id))
    api.ok("GET", "/ping")
    assert api.exchange(workflow_id, node, unstarted=0)["vacancies"] == []
    (vacancy,) = eventually(lambda: api.exchange(workflow_id, node, unstarted=1)["vacancies"])
    assert vacancy["slots"] == 1
    api.exchange(workflow_id, node, released=[first])
    assert [each["id"] for each in other.result()["jobs"]] == [first]
    assert not idle.is_over, "it has too little memory"


def test_a_wait_ends_that_of_a_runner_with_unstarted_jobs(api: Any, waiting: Any) -> None:
    """It learns at once who waits."""
    workflow_id, node, _ = chain(api)
    holder = waiting(workflow_id, node, unstarted=2)
    idle = waiting(workflow_id, api.node(workflow_id))
    assert holder.result()["vacancies"] == [{"slots": 1, "free": None}]
    assert not idle.is_over


def test_a_runner_with_unstarted_jobs_does_not_wait_while_others_do(api: Any, waiting: Any) -> None:
    """It learns of a wait that began before its own."""
    workflow_id, node, _ = chain(api)
    idle = waiting(workflow_id, api.node(workflow_id))
    eventually(lambda: api.exchange(workflow_id, node, unstarted=2, wait_s=LONG_S)["vacancies"])
    assert not idle.is_over


def test_nothing_is_claimed_ahead_while_others_wait(api: Any, waiting: Any, report_end: Any) -> None:
    """What becomes ready then goes to the runner that waits."""
    workflow_id = api.planned(3, [[1, 0], [2, 0]])
    node = api.node(workflow_id)
    (job,) = api.exchange(workflow_id, node, slots=1)["jobs"]
    idle = waiting(workflow_id, api.node(workflow_id))
    eventually(lambda: api.exchange(workflow_id, node, unstarted=1)["vacancies"])
    mine = api.exchange(workflow_id, node, ended=[report_end(job["id"])], slots=1, ahead=5)["jobs"]
    assert [len(mine), len(idle.result()["jobs"])] == [1, 1]


def test_a_runner_that_fits_no_ready_job_does_not_wait_for_others(api: Any, waiting: Any) -> None:
    """It does not count as one that waits."""
    workflow_id = api.planned(3)
    node = api.node(workflow_id)
    none = {"num_cpus": 0, "memory_bytes": 0, "num_gpus": 0, "num_nodes": 1}
    idle = waiting(workflow_id, api.node(workflow_id), free=none, total=none)
    assert api.exchange(workflow_id, node, unstarted=1)["vacancies"] == []
    assert len(api.exchange(workflow_id, node, slots=1, ahead=2)["jobs"]) == 3
    assert not idle.is_over


def test_a_runner_whose_run_is_over_is_refused(api: Any, background: Any) -> None:
    """A new run wakes the runners of the last one."""
    workflow_id, node, _ = chain(api)
    request = {"compute_node_id": node, "run_id": 1, "slots": 1, "wait_s": LONG_S}
    idle = background(lambda: api.call("POST", f"/workflows/{workflow_id}/exchange", request))
    api.ok("GET", "/ping")
    api.ok("POST", f"/workflows/{workflow_id}/begin_run", {"force": True})
    answer = idle.result()
    assert (answer.status, "Run ID mismatch" in answer.message) == (422, True)


def test_a_newer_call_ends_an_older_one(api: Any, waiting: Any) -> None:
    """A runner that calls again has no use for the old answer; other runners wait on."""
    workflow_id, node, first = chain(api)
    other = waiting(workflow_id, api.node(workflow_id))
    old = waiting(workflow_id, node, seq=1)
    new = waiting(workflow_id, node, seq=2)
    assert old.result()["jobs"] == []
    late = waiting(workflow_id, node, seq=1)
    assert late.result()["jobs"] == []
    assert not new.is_over
    assert not other.is_over
    api.exchange(workflow_id, node, released=[first], seq=3)
    assert new.result()["jobs"] == []
    assert [job["id"] for job in other.result()["jobs"]] == [first]


def test_a_wait_ends_in_time(api: Any) -> None:
    """The reply is empty when the wait is over."""
    workflow_id, node, _ = chain(api)
    answer = api.exchange(workflow_id, node, slots=1, wait_s=0.05)
    assert (answer["jobs"], answer["is_complete"]) == ([], False)


def test_a_call_returns_at_once_when_there_is_nothing_to_wait_for(api: Any, report_end: Any) -> None:
    """Jobs at hand, a complete or a canceled workflow: answered at once."""
    workflow_id, node, first = chain(api)
    answer = api.exchange(workflow_id, node, ended=[report_end(first)], slots=1, wait_s=LONG_S)
    (second,) = answer["jobs"]
    answer = api.exchange(workflow_id, node, ended=[report_end(second["id"])], slots=1, wait_s=LONG_S)
    assert answer["is_complete"]
    assert api.exchange(workflow_id, node, slots=1, wait_s=LONG_S)["is_complete"]


def test_reports_are_kept_while_the_runner_waits(api: Any, waiting: Any, report_end: Any) -> None:
    """The reports of an exchange are recorded before it waits."""
    workflow_id = api.planned(3, [[2, 0], [2, 1]])
    node, other = api.node(workflow_id), api.node(workflow_id)
    first, second = api.exchange(workflow_id, node, slots=2)["jobs"]
    idle = waiting(workflow_id, node, ended=[report_end(first["id"])])
    eventually(lambda: api.ok("GET", f"/jobs/{first['id']}")["status"] == "completed")
    assert not idle.is_over
    api.exchange(workflow_id, other, ended=[report_end(second["id"])])
    assert [job["name"] for job in idle.result()["jobs"]] == ["j2"]


def test_a_runner_that_hung_up_gets_no_jobs(api: Any, report_end: Any) -> None:
    """A job is not handed to a connection that is gone."""
    workflow_id = api.planned(3, [[2, 0], [2, 1]])
    node, gone = api.node(workflow_id), api.node(workflow_id)
    first, second = (job["id"] for job in api.exchange(workflow_id, node, slots=2)["jobs"])
    address = urlsplit(api.url)
    connection = http.client.HTTPConnection(address.netloc)
    request = {"compute_node_id": gone, "run_id": 1, "slots": 1, "wait_s": LONG_S, "ended": [report_end(second)]}
    connection.request("POST", f"{address.path}/workflows/{workflow_id}/exchange", json.dumps(request))
    eventually(lambda: api.ok("GET", f"/jobs/{second}")["status"] == "completed")  # now the call waits
    connection.close()
    api.ok("GET", "/ping")
    api.exchange(workflow_id, node, released=[first])
    (job,) = api.exchange(workflow_id, node, slots=1, wait_s=LONG_S)["jobs"]
    assert job["id"] == first


def test_a_waiting_call_of_a_dead_runner_gets_no_jobs(api: Any, background: Any) -> None:
    """Its lease was taken over while it waited; what it reports again is refused, too."""
    workflow_id = api.planned(1)
    node, dead = api.node(workflow_id), api.node(workflow_id)
    (job,) = api.exchange(workflow_id, node, slots=1)["jobs"]
    path = f"/workflows/{workflow_id}/exchange"
    request = {"compute_node_id": dead, "run_id": 1, "seq": 1, "slots": 1, "wait_s": LONG_S}
    call = background(lambda: api.call("POST", path, request))
    api.ok("GET", "/ping")
    taken = api.ok("POST", f"/compute_nodes/{dead}/take_over", {"epoch": 0, "by": node})
    assert taken == {"epochs": {str(dead): 1}}
    assert call.result().status == 409
    api.exchange(workflow_id, node, released=[job["id"]])
    late = api.call("POST", path, {**request, "seq": 2, "wait_s": 0})
    assert (late.status, "taken over by another runner" in late.message) == (409, True)
    again = api.call("POST", f"/compute_nodes/{dead}/take_over", {"epoch": 0})
    assert (again.status, f"compute node {node} has taken over" in again.message) == (409, True)
    assert api.ok("GET", f"/jobs/{job['id']}")["status"] == "ready"


def test_many_runners_share_the_jobs(api: Any, waiting: Any) -> None:
    """One job for each of twenty that wait, none twice."""
    workflow_id = api.planned(20)
    node = api.node(workflow_id)
    held = [job["id"] for job in api.exchange(workflow_id, node, slots=20)["jobs"]]
    idle = [waiting(workflow_id, api.node(workflow_id)) for _ in range(20)]
    api.exchange(workflow_id, node, released=held)
    assert sorted(call.result()["jobs"][0]["id"] for call in idle) == held
