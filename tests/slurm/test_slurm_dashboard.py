"""The dashboard in front of a workflow on a real cluster, in a browser."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from browser_pages import DashPage, open_dash, running_chromium
from slurm_cluster import Cluster, ServedTorc, eventually

SPEC = """
name: survey
resource_requirements:
  - {name: small, num_cpus: 1, memory: 50m, runtime: PT1M}
jobs:
  - {name: good, command: 'while [ ! -e go ]; do sleep 0.2; done; hostname', resource_requirements: small, scheduler: s}
  - {name: bad, command: 'echo no calibration file >&2; exit 3', resource_requirements: small, scheduler: s}
slurm_schedulers:
  - {name: s, account: research, partition: short, mem: 200m, nodes: 1, walltime: '00:05:00', extra: %s}
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
