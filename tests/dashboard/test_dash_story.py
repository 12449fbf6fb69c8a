"""From an empty server to a repaired workflow, with the requests that the page sends."""

import json
import subprocess
import time
from pathlib import Path

import pytest
from dash_bench import DashProgram, DashReader, end_dash, running_dash, start_dash
from people import Person
from programs import BIN, isolated_environment

pytestmark = pytest.mark.e2e
FAILING = {
    "name": "demo",
    "jobs": [
        {"name": "good", "command": "echo fine"},
        {"name": "bad", "command": "test -e fixed || { echo cannot find the grid >&2; exit 3; }"},
        {"name": "after", "command": "true", "depends_on": ["bad"]},
    ],
}


def test_a_failed_workflow_is_understood_and_repaired(dash: DashProgram, owner: DashReader) -> None:
    id_ = owner.create(FAILING)
    assert owner.get(f"dash/workflows/{id_}/overview")["status"] == "uninitialized"
    run = owner.run_to_its_end(id_)
    assert (run["state"], run["exit_code"], run["text"]) == ("failed", 1, f"torc run {id_}")
    overview = owner.get(f"dash/workflows/{id_}/overview")
    assert overview["headline"].startswith(f"demo (workflow {id_}) failed: 1 of 3 jobs done, 1 failed, 1 canceled")
    (failed,) = overview["failed"]
    assert (failed["job_name"], failed["last_line"]) == ("bad", "cannot find the grid")
    assert overview["next_command"] == f"torc why-failed {id_}"
    (group,) = owner.get(f"dash/workflows/{id_}/why-failed")["groups"]
    assert group["sign"] == "cannot find the grid"
    reasons = {each["reason"] for each in owner.get(f"dash/workflows/{id_}/explain")["groups"]}
    assert reasons == {"failed", "dependency_failed"}
    assert owner.get(f"dash/workflows/{id_}/explain", job=failed["job_id"])["reason"] == "failed"

    (attempt,) = owner.get(f"dash/workflows/{id_}/jobs/{failed['job_id']}/attempts")["attempts"]
    assert (attempt["exit_class"], attempt["result"]["return_code"], attempt["is_here"]) == ("user_error", 3, True)
    assert attempt["logs"]["stderr"]["size"] == len("cannot find the grid\n")
    part = owner.get(f"dash/workflows/{id_}/log", job=failed["job_id"], stream="stderr")
    assert part["text"] == "cannot find the grid\n"

    (dash.folder / "fixed").touch()
    assert owner.run_to_its_end(id_, retry_failed=True)["state"] == "succeeded"
    assert owner.get(f"dash/workflows/{id_}/overview")["status"] == "completed"


def test_a_preview_tells_and_changes_nothing(owner: DashReader) -> None:
    id_ = owner.create(FAILING)
    preview = owner.order("delete", id_, preview=True)
    assert preview["text"] == f"torc workflows delete {id_} --yes"
    assert preview["document"]["jobs"] == 3
    assert preview["sentences"] == [
        "Deletes 3 jobs. The files themselves and logs stay.",
        "There is no undo. Export keeps a copy.",
    ]
    run = owner.order("run", id_, preview=True, options={"retry_failed": True})
    assert run["text"] == f"torc run {id_} --retry-failed"
    assert "No job has failed or was canceled." in run["sentences"]
    first = owner.order("initialize", id_, preview=True)
    assert (first["state"], first["text"]) == ("succeeded", f"torc workflows initialize {id_} --dry-run")
    assert owner.get(f"api/workflows/{id_}")["name"] == "demo"
    assert owner.order("delete", id_)["state"] == "succeeded"
    assert owner.http.get(f"api/workflows/{id_}").status_code == 404


def test_errors_of_a_spec_have_their_lines(owner: DashReader) -> None:
    options = {"text": "name: x\njobs:\n  - nome: a\n    command: b\n", "format": "yaml"}
    checked = owner.order("create", options=options, preview=True)
    assert checked["document"]["valid"] is False
    assert checked["document"]["errors"][0].startswith("spec.yaml:3:")
    created = owner.order("create", options=options)
    assert created["state"] == "failed"
    assert {finding["line"] for finding in created["findings"]} == {3}
    assert "spec.yaml:3" in created["error"]


def test_a_spec_is_created_from_its_path(owner: DashReader, tmp_path: Path) -> None:
    path = tmp_path / "it's a spec.json"
    path.write_text(json.dumps(FAILING))
    options = {"path": str(path)}
    assert owner.order("create", describe=True, options=options)["text"].endswith("'\"'\"'s a spec.json'")
    assert owner.order("create", options=options)["document"]["job_count"] == 3


def test_a_long_command_can_be_stopped(owner: DashReader) -> None:
    id_ = owner.create({"name": "long", "jobs": [{"name": "sleeper", "command": "sleep 600"}]})
    run = owner.order("run", id_, wait=0)
    while owner.get(f"dash/workflows/{id_}/overview")["job_counts"].get("running") != 1:
        time.sleep(0.2)
    run = owner.http.post(f"dash/commands/{run['id']}/stop").json()
    while run["state"] == "running":
        run = owner.get(f"dash/commands/{run['id']}", wait=20)
    assert run["state"] == "stopped"
    assert owner.get(f"dash/workflows/{id_}/overview")["interrupted_jobs"] == 1


@pytest.mark.parametrize(
    ("order", "status"),
    [
        ({"command": "rm"}, 404),
        ({"command": "run"}, 400),
        ({"command": "create", "workflow_id": 1}, 400),
        ({"command": "run", "workflow_id": -1}, 400),
        ({"command": "run", "workflow_id": 1, "options": {"shell": "x"}}, 400),
        ({"command": "run", "workflow_id": 1, "options": {"num_cpus": "--help"}}, 400),
        ({"command": "run", "workflow_id": 1, "options": {"num_cpus": True}}, 400),
        ({"command": "run", "workflow_id": 1, "options": {"output_dir": "relative"}}, 400),
        ({"command": "run", "workflow_id": 1, "options": {"time_limit": "a\nb"}}, 400),
        ({"command": "run", "workflow_id": 1, "folder": "/no/such/folder"}, 400),
        ({"command": "run", "workflow_id": 1, "folder": "/" + "x" * 5000}, 400),
        ({"command": "run", "workflow_id": 1, "folder": "/a\0b"}, 400),
        ({"command": "slurm_logs", "workflow_id": 1, "preview": True}, 400),
        ({"command": "create", "options": {}}, 400),
        ({"command": "create", "options": {"text": "a", "path": "/b"}}, 400),
        ({"command": "create", "options": {"text": "a", "format": "../x"}}, 400),
        ({"command": "pending_retry", "workflow_id": 1, "options": {"jobs": ["--all"]}}, 400),
        ({"command": "cancel", "workflow_id": 1, "unknown": 1}, 400),
        ([], 400),
    ],
)
def test_a_wrong_order_is_refused_with_a_reason(owner: DashReader, order: object, status: int) -> None:
    answer = owner.http.post("dash/commands", json=order)
    assert (answer.status_code, bool(answer.json()["error"]["message"])) == (status, True)


def test_the_server_is_started_and_ended_along_with_the_dashboard(tmp_path: Path) -> None:
    database = tmp_path / "own.db"
    program = start_dash(tmp_path, "--standalone", "--database", str(database))
    try:
        owner = program.owner()
        server = owner.get("dash/server")
        assert (server["running"], server["database"]) == (True, str(database))
        assert "/~" not in server["url"]
        id_ = owner.create({"name": "long", "jobs": [{"name": "sleeper", "command": "sleep 600"}]})
        owner.order("run", id_, wait=0)
        while owner.get(f"dash/workflows/{id_}/overview")["job_counts"].get("running") != 1:
            time.sleep(0.2)
        listed = subprocess.run(
            [BIN / "torc", "--database", str(database), "workflows", "list"],
            env=isolated_environment(tmp_path / "home"),
            capture_output=True,
            text=True,
            check=True,
        )
        assert "long" in listed.stdout
        assert owner.http.post("dash/server/stop").json()["running"] is False
        gone = owner.http.get("api/workflows")
        assert (gone.status_code, gone.json()["upstream"]) == (502, "away")
        assert owner.get("dash/state")["server"]["state"] == "away"
        assert owner.http.post("dash/server/start").json()["running"] is True
        assert owner.get(f"api/workflows/{id_}")["name"] == "long"
    finally:
        assert end_dash(program) == 0
    assert not Path(f"/proc/{server['pid']}").exists()


def test_a_run_goes_on_when_the_dashboard_ends(server: str, tmp_path: Path) -> None:
    with running_dash(tmp_path, "--api-url", server) as program:
        owner = program.owner()
        job = {"name": "slow", "command": f"sleep 4; touch {tmp_path}/done"}
        id_ = owner.create({"name": "slow", "jobs": [job]})
        owner.order("run", id_, wait=0)
        while owner.get(f"dash/workflows/{id_}/overview")["job_counts"].get("running") != 1:
            time.sleep(0.1)
    person, deadline = Person(server), time.monotonic() + 60
    while person.ok("GET", f"/compute_nodes?workflow_id={id_}&is_active=true")["items"]:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert (tmp_path / "done").exists()


def test_a_dashboard_without_a_server_says_so(tmp_path: Path) -> None:
    with running_dash(tmp_path, "--api-url", "http://127.0.0.1:9") as program:
        owner = program.owner()
        assert owner.get("dash/state")["server"]["state"] == "away"
        for path in ("api/workflows", "dash/workflows/1/overview"):
            answer = owner.http.get(path)
            assert (answer.status_code, answer.json()["upstream"]) == (502, "away")


def test_the_words_are_those_of_the_command_line(owner: DashReader) -> None:
    words = owner.get("dash/words")
    assert words["job_statuses"]["completed"]["glyph"] == "✓"
    assert words["workflow_states"]["pending_failed"]["word"] == "waits for your verdict"
    assert [60, "1 min"] in words["durations"] or words["durations"]
    assert words["exit_classes"]["oom"] == "out of memory"
