"""The runners of a workflow in a browser."""

import os
import signal
from pathlib import Path

from browser_pages import DashPage
from dash_bench import DashReader
from playwright.sync_api import expect

PATIENCE_MS = 60_000


def test_a_runner_is_drained(page: DashPage, owner: DashReader, tmp_path: Path) -> None:
    """The button stands beside the state, in view at the usual width, and is taken back; a drained runner ends."""
    gate = tmp_path / "gate"
    wait = {"name": "wait_{i}", "command": f"while [ ! -e {gate} ]; do sleep 0.05; done", "parameters": {"i": "1:3"}}
    workflow = owner.create({"name": "long", "jobs": [wait]})
    owner.order("run", workflow, options={"max_parallel_jobs": 1}, wait=0)
    try:
        table = page.show(f"w/{workflow}/runners").get_by_role("main")
        expect(table.get_by_text("▶ works")).to_be_visible(timeout=PATIENCE_MS)
        drain = table.get_by_role("button", name="Drain")
        expect(drain).to_be_in_viewport(ratio=1)
        drain.click()
        expect(table.get_by_text("◌ drains")).to_be_visible(timeout=PATIENCE_MS)
        table.get_by_role("button", name="Undo").click()
        expect(table.get_by_text("▶ works")).to_be_visible(timeout=PATIENCE_MS)
        assert page.accessibility_findings() == []
        table.get_by_role("button", name="Drain").click()
        expect(table.get_by_text("◌ drains")).to_be_visible(timeout=PATIENCE_MS)
    finally:
        gate.touch()
    expect(table.get_by_text("■ ended")).to_be_visible(timeout=PATIENCE_MS)


def test_a_runner_that_was_killed_is_lost_everywhere(page: DashPage, owner: DashReader, tmp_path: Path) -> None:
    """Headline, numbers and stages agree on the jobs of a dead runner, and the page says what becomes of them."""
    wait = {"name": "wait", "command": f"while [ ! -e {tmp_path}/gate ]; do sleep 0.05; done"}
    workflow = owner.create({"name": "killed", "jobs": [wait]})
    run = owner.order("run", workflow, wait=0)
    shown = page.show(f"w/{workflow}/runners").get_by_role("main")
    expect(shown.get_by_text("▶ works")).to_be_visible(timeout=PATIENCE_MS)
    (node,) = owner.get("api/compute_nodes", workflow_id=workflow)["items"]
    os.kill(node["pid"], signal.SIGKILL)
    while run["state"] == "running":
        run = owner.get(f"dash/commands/{run['id']}", wait=20)
    main = page.show(f"w/{workflow}").get_by_role("main")
    expect(main.get_by_role("status")).to_contain_text("interrupted: 0 of 1 job done, 1 interrupted")
    expect(main).to_contain_text("1 job was with a runner that is dead")
    bars = main.get_by_role("img").evaluate_all("all => all.map(each => each.getAttribute('aria-label'))")
    assert {bar for bar in bars if bar} == {"1 terminated"}
    assert page.accessibility_findings() == []
    expect(page.show(f"w/{workflow}/runners").get_by_role("main")).to_contain_text("✗ lost")
    (tmp_path / "gate").touch()
    owner.run_to_its_end(workflow)
    assert owner.get(f"dash/workflows/{workflow}/overview")["status"] == "completed"
