"""The runners of a workflow in a browser."""

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
