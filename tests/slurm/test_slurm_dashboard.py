"""The dashboard in front of a workflow on a real cluster, in a browser."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from browser_pages import DashPage, open_dash, running_chromium
from playwright.sync_api import Locator, Page, expect
from slurm_cluster import Cluster, ServedTorc, eventually

PATIENCE_MS = 120_000

SPEC = """
name: survey
resource_requirements:
  - {name: small, num_cpus: 1, memory: 50m, runtime: PT4M}
jobs:
  - {name: good, command: 'while [ ! -e go ]; do sleep 0.2; done; hostname', resource_requirements: small, scheduler: s}
  - {name: bad, command: 'echo no calibration file >&2; exit 3', resource_requirements: small, scheduler: s}
slurm_schedulers:
  - {name: s, account: research, partition: short, mem: 200m, nodes: 1, walltime: '00:08:00', extra: %s}
actions:
  - {trigger_type: on_workflow_start, action_type: schedule_nodes, scheduler: s, scheduler_type: slurm}
"""


@contextmanager
def _dash_of(cluster: Cluster, torc: ServedTorc) -> Iterator[str]:
    """Run ``torc-dash`` as the user of the cluster; yield the URL with its start token."""
    token = "the-start-token-of-this-test"
    command = [str(cluster.bin / "torc-dash"), "--api-url", torc.env["TORC_API_URL"], "--port", "0"]
    process = cluster.start(*command, env={"TORC_DASH_TOKEN": token, "PYTHONUNBUFFERED": "1"})
    assert process.stdout is not None
    try:
        printed = ""
        while not (found := re.search(r"http://\S+token=\S+", printed)):
            line = process.stdout.readline()
            assert line, printed + (process.stderr.read() if process.stderr else "")
            printed += line
        yield found[0]
    finally:
        process.terminate()
        process.communicate(timeout=30)


def _picture(page: DashPage, name: str) -> None:
    """Save what is shown in the folder that TORC_TEST_PICTURES names, if it does."""
    if folder := os.environ.get("TORC_TEST_PICTURES"):
        page.page.screenshot(path=Path(folder, f"{name}.png"), full_page=True)


def _shown(page: DashPage, route: str, text: str) -> None:
    """Show a view again until it has a text."""
    eventually(lambda: text in (page.show(route).inner_text("main") or ""))


def test_a_queued_allocation_says_why_it_waits(cluster: Cluster, served_torc: ServedTorc) -> None:
    """The reason of the batch system stands beside the allocation, as in the list of the command line."""
    cluster.write("w.yaml", SPEC % "'-c2 --begin=now+1hour'")
    served_torc("submit", "w.yaml")
    with _dash_of(cluster, served_torc) as url, running_chromium() as browser, open_dash(browser, url) as page:
        eventually(lambda: "BeginTime" in served_torc("scheduled-compute-nodes", "list", "1"))
        _shown(page, "w/1/runners", "BeginTime")
        _picture(page, "slurm-queued")


def _open(page: Page, command: str) -> Locator:
    """Open the dialog of a command; a report begins at once."""
    page.get_by_role("main").get_by_role("button", name=f"{command}…").first.click()
    return page.get_by_role("dialog")


def _carry_out(page: Page, command: str) -> None:
    """Open the dialog of a command, and carry it out."""
    dialog = _open(page, command)
    dialog.get_by_role("button", name=command, exact=True).click()
    expect(dialog).to_have_count(0, timeout=PATIENCE_MS)


def _close(page: Page, dialog: Locator) -> None:
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)


def _read_log(page: DashPage, stream: str, text: str) -> None:
    """Show an output of the newest allocation."""
    page.page.get_by_role("region", name="Allocations").last.get_by_role("button", name=stream).first.click()
    dialog = page.page.get_by_role("dialog")
    expect(dialog).to_contain_text(text, timeout=PATIENCE_MS)
    _picture(page, f"slurm-{stream}")
    _close(page.page, dialog)


def test_a_workflow_on_the_cluster_from_submission_to_its_logs(cluster: Cluster, served_torc: ServedTorc) -> None:
    """Submit, drain, output of the batch job, cancel, accounting and the search in logs, all in the page."""
    cluster.write("w.yaml", SPEC % "'-c2'")
    served_torc("workflows", "create", "w.yaml")
    with _dash_of(cluster, served_torc) as url, running_chromium() as browser, open_dash(browser, url) as page:
        shown = page.show("w/1")
        _carry_out(shown, "Submit")
        eventually(lambda: served_torc.counts()["running"] == 1)
        runners = page.show("w/1/runners").get_by_role("region", name="Runners").last
        expect(runners).to_contain_text("works", timeout=PATIENCE_MS)
        expect(runners).to_contain_text("slurm")
        _picture(page, "slurm-runners")
        runners.get_by_role("button", name="Drain").click()
        expect(runners).to_contain_text("drains", timeout=PATIENCE_MS)
        _picture(page, "slurm-drains")
        (cluster.folder / "go").touch()
        expect(runners).to_contain_text("ended", timeout=PATIENCE_MS)
        _read_log(page, "stdout", "Runner of workflow 1: 2 attempts, 1 failed")
        dialog = _open(shown, "Slurm accounting")
        expect(dialog).to_contain_text("COMPLETED", timeout=PATIENCE_MS)
        expect(dialog).to_contain_text("FAILED")
        _picture(page, "slurm-accounting")
        _close(shown, dialog)


def test_a_workflow_on_the_cluster_is_canceled(cluster: Cluster, served_torc: ServedTorc) -> None:
    """Its batch job ends, and the search in its logs finds and explains what Slurm wrote."""
    cluster.write("w.yaml", SPEC % "'-c2'")
    served_torc("submit", "w.yaml")
    with _dash_of(cluster, served_torc) as url, running_chromium() as browser, open_dash(browser, url) as page:
        eventually(lambda: served_torc.counts()["running"] == 1)
        shown = page.show("w/1")
        expect(shown.get_by_role("main").get_by_role("button", name="Cancel workflow…")).to_be_visible(
            timeout=PATIENCE_MS
        )
        _carry_out(shown, "Cancel workflow")
        eventually(lambda: not served_torc.queue())
        page.show("w/1/runners")
        _read_log(page, "stderr", "CANCELLED")
        dialog = _open(shown, "Search Slurm logs")
        expect(dialog).to_contain_text("canceled", timeout=PATIENCE_MS)
        expect(dialog.get_by_role("region", name="Errors")).to_contain_text("good, bad")
        _picture(page, "slurm-search")
