"""What the page offers for workflows: commands that fit their states, initializing new ones, refreshing by hand."""

import itertools
from pathlib import Path
from typing import Any

from browser_pages import DashPage
from dash_bench import DashReader
from playwright.sync_api import Page, expect

from torc_framework.models.progress import WorkflowOverview
from torc_framework.models.records import WorkflowRecord
from torc_framework.text.headline import trouble_texts
from torc_framework.text.status_text import STATUS_LOOKS

PATIENCE_MS = 60_000
ONE = {"jobs": [{"name": "a", "command": "true"}]}


def _offered(page: Page, name: str) -> list[str]:
    """Return the commands that the list offers for a workflow."""
    return page.get_by_label(f"Actions of {name}").locator("option").all_inner_texts()[1:]


def test_the_list_offers_what_fits(page: DashPage, owner: DashReader, tmp_path: Path) -> None:
    """A new workflow can be initialized, an ended one reinitialized, and one that runs canceled; its end is unknown."""
    owner.create({"name": "new_one", **ONE})
    owner.run_to_its_end(owner.create({"name": "ended_one", **ONE}))
    wait = f"while [ ! -e {tmp_path}/gate ]; do sleep 0.05; done"
    running = owner.create({"name": "running_one", "jobs": [{"name": "a", "command": wait}]})
    owner.order("run", running, wait=0)
    try:
        main = page.show(f"w/{running}").get_by_role("main")
        expect(main.get_by_role("button", name="Cancel workflow…")).to_be_visible(timeout=PATIENCE_MS)
        expect(main.get_by_role("button", name="Watch and recover…")).to_be_visible()
        expect(main).to_contain_text("End unknown: no job of a has completed yet.", timeout=PATIENCE_MS)
        shown = page.show("w")
        assert _offered(shown, "new_one") == ["Initialize…", "Run here…", "Submit…", "Archive…", "Delete…"]
        ended = ["Run here…", "Submit…", "Reinitialize…", "Reset…", "Archive…", "Delete…"]
        assert _offered(shown, "ended_one") == ended
        under_way = ["Run here…", "Watch and recover…", "Cancel workflow…", "Delete…"]
        assert _offered(shown, "running_one") == under_way
    finally:
        (tmp_path / "gate").touch()


def test_states_are_those_of_the_command_line(page: DashPage) -> None:
    """The list derives the same state from the same numbers as `WorkflowOverview.state`."""
    some = [{}, *({label: 2} for label in STATUS_LOOKS)]
    facts: dict[str, list[Any]] = {
        "counts": [{**one, **other} for one in some for other in some],
        "interrupted": [0, 1],
        "is_canceled": [False, True],
        "silent_runners": [0, 1],
    }
    entries = [dict(zip(facts, values, strict=True)) for values in itertools.product(*facts.values())]
    script = """async (entries) => {
        const list = await import(new URL("static/views/workflows.js", document.baseURI));
        return entries.map((entry) => list.stateOf({active_runners: 1, is_archived: false, ...entry}));}"""
    record = WorkflowRecord(name="w", user="u")
    overviews = [WorkflowOverview(record, 1, is_archived=False, active_runners=1, **each) for each in entries]
    assert page.show("w").evaluate(script, entries) == [each.state for each in overviews]


def test_numbers_of_jobs_are_those_of_the_command_line(page: DashPage) -> None:
    """Jobs that a runner holds and has not started are claimed."""
    counts = {"failed": 1, "running": 8, "pending": 92}
    script = """async (counts) => {
        const list = await import(new URL("static/views/workflows.js", document.baseURI));
        return list.troubles(counts, 0, "running");}"""
    assert page.show("w").evaluate(script, counts) == "".join(f", {text}" for text in trouble_texts(counts))


def test_a_new_workflow_is_initialized_if_wanted(page: DashPage) -> None:
    """As the wizard of the manual offers it."""
    shown = page.show("create/editor?example=diamond")
    shown.get_by_label("Initialize it").check()
    shown.get_by_role("button", name="Create", exact=True).click()
    main = shown.get_by_role("main")
    expect(main.get_by_role("heading", name="diamond")).to_be_visible(timeout=PATIENCE_MS)
    expect(main).to_contain_text("1 ○ready", timeout=PATIENCE_MS)
    expect(main).to_contain_text("3 □blocked")


def test_an_action_of_the_wizard_has_the_only_scheduler(page: DashPage) -> None:
    """With several, the reader chooses."""
    shown = page.show("create/wizard")
    shown.get_by_label("Workflow name").fill("by-wizard")
    shown.get_by_role("button", name="Next").click()
    job = shown.get_by_role("group", name="Job 1", exact=True)
    job.get_by_label("Job name").fill("only")
    job.get_by_label("Command").fill("true")
    shown.get_by_role("button", name="Next").click()
    chosen = []
    for number, name in enumerate(("first", "second"), start=1):
        shown.get_by_role("button", name="+ Add scheduler").click()
        scheduler = shown.get_by_role("group", name=f"Scheduler {number}")
        scheduler.get_by_label("Scheduler name").fill(name)
        scheduler.get_by_label("Account").fill("project")
        shown.get_by_role("button", name="Next").click()
        shown.get_by_role("button", name="+ Add action").click()
        action = shown.get_by_role("group", name=f"Action {number}", exact=True)
        chosen.append(action.get_by_label("Scheduler").input_value())
        shown.get_by_role("button", name="Back").click()
    assert chosen == ["first", ""]


def test_a_reader_may_refresh_by_hand(page: DashPage, owner: DashReader) -> None:
    """The page then shows what it showed until the reader asks for more; the choice is kept."""
    workflow = owner.create({"name": "still", **ONE})
    page.show("settings").get_by_label("Only when I press r").check()
    shown = page.show(f"w/{workflow}")
    main = shown.get_by_role("main")
    expect(main).to_contain_text("not started")
    owner.run_to_its_end(workflow)
    shown.wait_for_function("() => document.querySelector('.connection.live')")
    expect(main).to_contain_text("not started")
    shown.get_by_role("button", name="Refresh").click()
    expect(main).to_contain_text("completed", timeout=PATIENCE_MS)
    assert page.accessibility_findings() == []


def test_a_report_begins_at_once(page: DashPage, owner: DashReader) -> None:
    """Its dialog has the answer without a further press of a button."""
    workflow = owner.create({"name": "plan", **ONE})
    shown = page.show(f"w/{workflow}/graph")
    shown.get_by_role("button", name="Execution plan…").click()
    dialog = shown.get_by_role("dialog")
    expect(dialog.get_by_role("table")).to_be_visible(timeout=PATIENCE_MS)
    expect(dialog.get_by_role("button", name="Again")).to_be_visible()
    assert page.accessibility_findings() == []
