"""Tests of the client's methods for views: every answer is read into its class, every argument reaches the server."""

import pytest

from torc_framework.client import TorcClient
from torc_framework.errors import ApiError
from torc_framework.models import workflow_views as views
from torc_framework.models.plan import Plan, PlannedJob
from torc_framework.models.records import FileRecord, WorkflowRecord


@pytest.fixture
def planned(api: TorcClient) -> int:
    """A workflow of ready jobs and one that waits for two of them."""
    jobs = [PlannedJob(f"train_lr{n}", "true", input_files=[0]) for n in range(3)]
    files = [FileRecord(workflow_id=0, name="in", path="/in")]
    plan = Plan(WorkflowRecord(name="w", user="u"), [*jobs, PlannedJob("end", "true")], [(3, 0), (3, 1)], files=files)
    return api.create_from_plan(plan, initialize=True).id


def test_every_view_is_read(api: TorcClient, planned: int) -> None:
    assert [each.group for each in api.progress_view(planned).groups] == ["train_lr#", "end"]
    assert [node.label for node in api.graph_view(planned).nodes] == ["train_lr#", "end"]
    assert isinstance(api.timeline_view(planned), views.TimelineView)
    assert api.failures_view(planned).groups == []
    assert [each.reason for each in api.waiting_view(planned).groups] == ["ready", "waits_for_jobs"]
    assert api.sweep_view(planned).x_values == ["0", "1", "2"]
    assert api.job_columns(planned).columns["name"] == ["train_lr0", "train_lr1", "train_lr2", "end"]


def test_arguments_reach_the_server(api: TorcClient, planned: int) -> None:
    names = ["name", "stage"]
    part = api.job_columns(planned, names, filter_text="train", sort="-name", offset=1, limit=1, counts=True)
    assert (part.columns, part.total, part.counts) == ({"name": ["train_lr1"], "stage": [1]}, 3, {"ready": 3})
    ids = api.job_columns(planned, ["id"]).columns["id"]
    assert api.job_columns(planned, ["id"], after_id=ids[2]).columns["id"] == ids[3:]
    group = api.graph_view(planned).nodes[0].id
    assert api.graph_view(planned, group=group, offset=2, limit=1).nodes[0].label == "train_lr2"
    assert {node.label for node in api.graph_view(planned, around=ids[3], depth=2).nodes} == {
        "train_lr0",
        "train_lr1",
        "end",
    }
    assert api.graph_view(planned, kind="files").nodes[0].kind == "file"
    assert api.timeline_view(planned, from_s=10.0, to_s=20.5, width=5, by_host=True, limit=3).resolution_s == 2.1
    assert api.sweep_view(planned, family="train_lr{lr}", x="lr", limit=2).omitted == 1
    assert api.failures_view(planned, by=["node", "class"], limit=1).group_count == 0


def test_a_wrong_filter_is_an_error_with_its_message(api: TorcClient, planned: int) -> None:
    with pytest.raises(ApiError, match="filter, position 1: no field"):
        api.job_columns(planned, filter_text="statis:x")
