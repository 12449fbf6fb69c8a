"""Tests of the endpoints of views: tags, parameters, refusals."""

from typing import Any

import pytest
from operations import VIEWS


def path(workflow_id: int, view: str) -> str:
    """Return the path of a view."""
    return f"/workflows/{workflow_id}/views/{view}"


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_is_tagged_until_something_happens(api: Any, view: str) -> None:
    id_ = api.planned(4, [[1, 0], [2, 0], [3, 1]])
    first = api.call("GET", path(id_, view))
    assert first.status == 200
    tag = first.headers["etag"]
    same = type(api)(api.url, {"If-None-Match": f'"other", W/{tag}'})
    again = same.call("GET", path(id_, view))
    # The tag changes by itself after some seconds, which may have passed.
    assert (again.status, again.body) in ((304, None), (200, again.body))
    assert again.headers["etag"] == tag or again.status == 200
    api.ok("PUT", f"/workflows/{id_}/cancel", {})
    api.ok("POST", f"/workflows/{id_}/reset_status", None)
    changed = same.call("GET", path(id_, view))
    assert changed.status == 200
    assert changed.headers["etag"] != tag


def test_a_tag_is_of_one_workflow(api: Any) -> None:
    tags = {api.call("GET", path(api.planned(1), "graph")).headers["etag"] for _ in range(3)}
    assert len(tags) == 3


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_of_an_unknown_workflow(api: Any, view: str) -> None:
    answer = api.call("GET", path(987_654, view))
    assert (answer.status, "not found" in answer.message.lower()) == (404, True)


@pytest.mark.parametrize(
    ("view", "query", "status", "message"),
    [
        ("jobs", {"q": "status:faild"}, 422, "filter, position 8"),
        ("jobs", {"q": "a" * 5000}, 422, "longer than"),
        ("jobs", {"q": '"'}, 422, "not closed"),
        ("jobs", {"sort": "nothing"}, 422, "no field"),
        ("jobs", {"fields": "id,nothing"}, 422, "no field"),
        ("jobs", {"after": 5}, 422, "not in the list"),
        ("jobs", {"offset": -1}, 400, "out of range"),
        ("graph", {"kind": "cake"}, 400, "none of jobs"),
        ("graph", {"open": "g99"}, 422, "no group"),
        ("graph", {"around": 10**9}, 404, "not found"),
        ("graph", {"around": 1, "depth": 11}, 400, "between 1 and 10"),
        ("timeline", {"from": "nan"}, 400, "out of range"),
        ("timeline", {"from": "soon"}, 400, "not a number"),
        ("timeline", {"from": 2, "to": 1}, 422, "ends before"),
        ("timeline", {"by": "planet"}, 400, "neither runner nor host"),
        ("failures", {"by": "colour"}, 422, "no 'colour'"),
        ("sweep", {"family": "x"}, 422, "no jobs"),
        ("sweep", {"x": "lr"}, 422, "no parameter"),
    ],
)
def test_wrong_parameters_are_refused(api: Any, view: str, query: dict[str, Any], status: int, message: str) -> None:
    answer = api.call("GET", path(api.planned(2), view), None, **query)
    assert answer.status == status, answer
    assert message in answer.message.replace("Not found", "not found"), answer.message


@pytest.mark.parametrize(
    ("view", "query"),
    [
        ("jobs", {"limit": 10**9, "offset": 2**62, "fields": "id," * 500 + "id"}),
        ("jobs", {"q": "id:" + ",".join(["9223372036854775807"] * 190)}),
        ("jobs", {"q": "a*" * 300}),
        ("jobs", {"q": "peak_mem>9223372036854775807 seconds>1e5 cpu<0.1"}),
        ("graph", {"limit": 10**9}),
        ("timeline", {"width": 10**9, "limit": 10**9, "from": -1e300, "to": 1e300}),
        ("timeline", {"from": 1e18}),
        ("failures", {"limit": 10**9, "by": "class," * 500 + "class"}),
        ("waiting", {"limit": 10**9}),
        ("sweep", {"limit": 10**9}),
    ],
)
def test_extreme_parameters_do_no_harm(api: Any, view: str, query: dict[str, Any]) -> None:
    answer = api.call("GET", path(api.planned(3), view), None, **query)
    assert answer.status in (200, 400, 422), answer


def test_lists_of_jobs_take_the_same_filter(api: Any) -> None:
    id_ = api.planned(3, [[2, 0]])
    found = api.ok("GET", "/jobs", None, workflow_id=id_, q="status:ready -j1")
    assert [job["name"] for job in found["items"]] == ["j0"]
    columns = api.ok("GET", path(id_, "jobs"), None, q="status:ready -j1", fields="name,stage,group", counts=True)
    assert columns == {
        "columns": {"name": ["j0"], "stage": [1], "group": ["j#"]},
        "total": 1,
        "offset": 0,
        "counts": {"ready": 1},
    }
    assert api.call("GET", "/jobs", None, workflow_id=id_, q="nothing:1").status == 422


def test_graph_of_members_and_neighbours(api: Any) -> None:
    id_ = api.planned(4, [[3, 0], [3, 1]])
    whole = api.ok("GET", path(id_, "graph"))
    assert [(node["label"], node["count"]) for node in whole["nodes"]] == [("j#", 3), ("j3", 1)]
    part = api.ok("GET", path(id_, "graph"), None, open=whole["nodes"][0]["id"], limit=2)
    assert [node["label"] for node in part["nodes"]] == ["j0", "j1", "j3"]
    assert (part["total"], part["edges"]) == (3, [[0, 2, 1], [1, 2, 1]])
    job = whole["nodes"][1]["job_id"]
    around = api.ok("GET", path(id_, "graph"), None, around=job)
    assert [node["label"] for node in around["nodes"]] == ["j0", "j1", "j3"]
    for kind in ("files", "user_data"):
        assert api.ok("GET", path(id_, "graph"), None, around=job, kind=kind)["kind"] == kind
