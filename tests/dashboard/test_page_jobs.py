"""What the page offers for one job: its events, steps of single jobs; the graph's legend; the editor's line numbers."""

from pathlib import Path

from browser_pages import DashPage
from dash_bench import DashReader
from playwright.sync_api import Page, expect

PATIENCE_MS = 60_000


def _confirm(page: Page, step: str, command: str) -> None:
    """Press a button of a job, and the one of its dialog, which names the command."""
    page.get_by_role("button", name=f"{step}…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator("code", has_text=command)).to_be_visible()
    dialog.get_by_role("button", name=step, exact=True).click()
    expect(dialog).to_have_count(0)


def test_a_job_is_excluded_and_taken_in_again(page: DashPage, owner: DashReader) -> None:
    """The page says what each step does, and offers the one that fits the status."""
    workflow = owner.create({"name": "choice", "jobs": [{"name": "a", "command": "true"}]})
    (job,) = owner.get("api/jobs", workflow_id=workflow)["items"]
    shown = page.show(f"w/{workflow}/j/{job['id']}")
    _confirm(shown, "Exclude this job", f"torc jobs cancel {job['id']}")
    expect(shown.get_by_role("main")).to_contain_text("–disabled", timeout=PATIENCE_MS)
    assert page.accessibility_findings() == []
    _confirm(shown, "Take this job in again", f"torc jobs cancel {job['id']} --undo")
    expect(shown.get_by_role("button", name="Exclude this job…")).to_be_visible(timeout=PATIENCE_MS)
    owner.run_to_its_end(workflow)
    assert owner.get(f"api/jobs/{job['id']}")["status"] == "completed"


def test_a_running_job_is_stopped_and_tried_again(page: DashPage, owner: DashReader, tmp_path: Path) -> None:
    """Its failure waits for a verdict; the retry leads to a finished run."""
    workflow = owner.create(
        {"name": "stuck", "jobs": [{"name": "a", "command": f"while [ ! -e {tmp_path}/gate ]; do sleep 0.05; done"}]}
    )
    run = owner.order("run", workflow, wait=0)
    (job,) = owner.get("api/jobs", workflow_id=workflow)["items"]
    shown = page.show(f"w/{workflow}/j/{job['id']}")
    expect(shown.get_by_role("main")).to_contain_text("▶running", timeout=PATIENCE_MS)
    _confirm(shown, "Stop this job", f"torc jobs terminate {job['id']}")
    (tmp_path / "gate").touch()
    owner.wait_for_end(run)  # until its runner has left, the dialog says that no job can be tried again
    shown.get_by_role("button", name="Retry this job…").click(timeout=PATIENCE_MS)
    dialog = shown.get_by_role("dialog")
    expect(dialog).to_contain_text("1 failed job runs again", timeout=PATIENCE_MS)
    dialog.get_by_role("button", name="Retry 1 job").click()
    expect(shown.get_by_role("main")).to_contain_text("✓completed", timeout=PATIENCE_MS)


def test_a_refused_retry_is_asked_for_again(page: DashPage, owner: DashReader) -> None:
    """The open dialog offers it as soon as the runner, which was why it was refused, has left."""
    workflow = owner.create({"name": "broken", "jobs": [{"name": "a", "command": "false"}]})
    owner.run_to_its_end(workflow)
    begun = {"pid": 1, "start_time": "2026-01-01T00:00:00Z", "is_active": True, "compute_node_type": "local"}
    offer = {"num_cpus": 1, "memory_gb": 1.0, "num_gpus": 0, "num_nodes": 1}
    made = owner.http.post("api/compute_nodes", json={"workflow_id": workflow, "hostname": "n1", **begun, **offer})
    node = made.raise_for_status().json()
    (job,) = owner.get("api/jobs", workflow_id=workflow)["items"]
    shown = page.show(f"w/{workflow}/j/{job['id']}")
    shown.get_by_role("button", name="Retry this job…").click(timeout=PATIENCE_MS)
    dialog = shown.get_by_role("dialog")
    expect(dialog).to_contain_text("1 active compute node", timeout=PATIENCE_MS)
    owner.http.put(f"api/compute_nodes/{node['id']}", json={**node, "is_active": False}).raise_for_status()
    expect(dialog).to_contain_text("1 failed job runs again", timeout=PATIENCE_MS)
    expect(dialog).not_to_contain_text("active compute node")


def test_the_events_of_a_job_of_a_large_workflow(page: DashPage, owner: DashReader) -> None:
    """They are found among those of all jobs, also under a name with quotes in it."""
    name = 'it\'s "first"'
    jobs = [{"name": name, "command": "true"}, {"name": "n{i}", "command": "true", "parameters": {"i": "1:1200"}}]
    workflow = owner.create({"name": "many", "jobs": jobs})
    owner.run_to_its_end(workflow, max_parallel_jobs=8)
    job = owner.get("api/jobs", workflow_id=workflow, name=name)["items"][0]["id"]
    events = page.show(f"w/{workflow}/j/{job}/events").get_by_role("region", name="Events")
    expect(events.get_by_role("row")).to_have_count(2)
    expect(events).to_contain_text("job_completed")


def test_the_colours_of_the_graph_are_explained(page: DashPage, owner: DashReader, tmp_path: Path) -> None:
    """Only of statuses that it shows; a file leads to its record."""
    (tmp_path / "in put.txt").touch()
    file = {"name": 'in "1"', "path": str(tmp_path / "in put.txt")}
    jobs = [{"name": "reads", "command": "true", "input_files": [file["name"]]}]
    workflow = owner.create({"name": "files", "files": [file], "jobs": jobs})
    shown = page.show(f"w/{workflow}/graph?kind=files").get_by_role("main")
    expect(shown.get_by_role("list", name="Colours")).to_have_text("·uninitialized")
    shown.get_by_role("link", name="data").click()
    expect(shown.get_by_role("grid", name="Files").get_by_role("row")).to_have_count(2)


def test_the_editor_numbers_its_lines(page: DashPage) -> None:
    """A number stands on the line of its text."""
    page.show("create/editor?example=diamond")
    numbers = page.page.locator(".editor pre")
    assert numbers.inner_text().split() == [str(line) for line in range(1, 16)]
    assert numbers.text_content() == "".join(f"{line}\n" for line in range(1, 16))


def test_nothing_is_offered_against_failures_that_are_not_there(page: DashPage, owner: DashReader) -> None:
    """Neither a retry nor a recovery."""
    workflow = owner.create({"name": "well", "jobs": [{"name": "a", "command": "true"}]})
    owner.run_to_its_end(workflow)
    main = page.show(f"w/{workflow}/failures").get_by_role("main")
    expect(main).to_contain_text("Nothing failed.")
    expect(main.get_by_role("button")).to_have_count(0)


def test_what_jobs_wait_for_is_a_column(page: DashPage, owner: DashReader) -> None:
    """It is chosen in the menu of columns, names the first jobs, and counts the others; it does not sort."""
    many = {"name": "part_{i}", "command": "true", "parameters": {"i": "1:40"}}
    jobs = [many, {"name": "join", "command": "true", "depends_on_regexes": ["part_.*"]}]
    workflow = owner.create(
        {"name": "fan-in", "jobs": [*jobs, {"name": "end", "command": "true", "depends_on": ["join"]}]}
    )
    shown = page.show(f"w/{workflow}/jobs?q=stage>1")
    shown.get_by_role("button", name="Columns…").click()
    shown.get_by_role("dialog").get_by_label("Dependencies").check()
    shown.keyboard.press("Escape")
    grid = shown.get_by_role("grid", name="Jobs")
    expect(grid.get_by_role("row").filter(has_text="part_1, part_2, part_3 and 37 more")).to_contain_text("join")
    expect(grid.get_by_role("row").last).to_contain_text("end")
    expect(grid.get_by_role("row").last).to_contain_text("join")
    expect(grid.get_by_role("columnheader", name="Dependencies").get_by_role("button")).to_have_count(0)
    assert page.accessibility_findings() == []
