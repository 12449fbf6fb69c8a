"""The page in a real Firefox: from a failing workflow to its repair, a log that grows, and the themes."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from dash_bench import DashProgram, DashReader
from firefox_pages import FirefoxPage, open_in_firefox, running_firefox

if TYPE_CHECKING:
    from selenium.webdriver.firefox.webdriver import WebDriver


@pytest.fixture(scope="module")
def firefox(tmp_path_factory: pytest.TempPathFactory) -> Iterator["WebDriver"]:
    """A headless Firefox."""
    with running_firefox(tmp_path_factory.mktemp("firefox")) as browser:
        yield browser


@pytest.fixture
def page(firefox: "WebDriver", dash: DashProgram) -> Iterator[FirefoxPage]:
    """The dashboard in the Firefox of the person who started it."""
    with open_in_firefox(firefox, dash.url) as opened:
        yield opened


def test_failures_are_found_and_repaired(page: FirefoxPage, owner: DashReader, tmp_path: Path) -> None:
    """From the list to the cause, the log of a job, and a retry that finishes the workflow."""
    marker = tmp_path / "fixed"
    command = f'if [ {{i}} = 2 ] && [ ! -e {marker} ]; then echo "ValueError: bad shard {{i}}" >&2; exit 3; fi'
    workflow = owner.create(
        {"name": "in-firefox", "jobs": [{"name": "train_{i}", "command": command, "parameters": {"i": "1:3"}}]}
    )
    owner.run_to_its_end(workflow)
    page.show("w")
    page.click("section[aria-label='Needs attention'] a", "in-firefox")
    page.find(".headline", "1 failed")
    page.click("a.button", "See why")
    page.find(".cause", "ValueError: bad shard")
    page.click(".cause a", "train_2")
    page.find("[role=log]", "ValueError: bad shard 2")
    marker.touch()
    page.browser.back()
    page.click(".cause button", "Retry failed jobs")
    page.find("dialog .effects", "1 job runs again")
    page.find("dialog code", f"torc run {workflow} --retry-failed")
    page.click("dialog footer button", "Retry failed jobs")
    page.find(".empty", "Nothing failed.")
    page.show(f"w/{workflow}")
    page.find(".headline", "completed: 3 jobs")
    page.find(".connection", "Live")


JOBS = 1000
"""Jobs of the workflow in which 37 fail."""


def test_37_failed_jobs_are_found_and_done(page: FirefoxPage, owner: DashReader, tmp_path: Path) -> None:
    """From the list to two causes that are told apart by logs, to a log, to retries of each, to all completed."""
    disk, input_ = tmp_path / "disk", tmp_path / "input"
    command = f"""
        if [ $(( {{i}} % {43 * JOBS // 1000} )) = 1 ] && [ ! -e {input_} ]; then echo "KeyError: 'gain'" >&2; exit 1; fi
        if [ $(( {{i}} % {77 * JOBS // 1000} )) = 6 ] && [ ! -e {disk} ]; then echo "OSError: full" >&2; exit 28; fi"""
    calibrate = {"name": "calibrate_{i}", "command": command, "parameters": {"i": f"1:{JOBS}"}}
    report = {"name": "report", "command": "echo report", "depends_on_regexes": ["calibrate_.*"]}
    workflow = owner.create({"name": "sensors", "jobs": [calibrate, report]})
    owner.run_to_its_end(workflow)
    page.show("w")
    page.click("section[aria-label='Needs attention'] a", "sensors")
    page.find(".headline", "37 failed, 1 canceled")
    page.click("a.button", "See why")
    page.find(".cause:nth-child(1)", "24 jobs: KeyError: 'gain'")
    page.find(".cause:nth-child(2)", "13 jobs: OSError: full")
    page.click(".cause:nth-child(2) a", "calibrate_6")
    page.find("[role=log]", "OSError: full")
    page.browser.back()
    disk.touch()
    page.click(".cause:nth-child(2) button", "Retry these 13 jobs")
    page.find("dialog", "13 failed jobs run again, with the same requests.")
    page.find("dialog", "24 other failed jobs stay failed.")
    page.click("dialog footer button", "Retry 13 jobs")
    page.find(".messages", "13 jobs will run again")
    page.show(f"w/{workflow}")
    page.find(".headline", f"(workflow {workflow}) failed: {JOBS - 24:,} of {JOBS + 1:,} jobs done, 24 failed")
    input_.touch()
    page.click(".counts a", "24")
    page.click("main button", "Retry the 24 failed jobs that match")
    page.find("dialog", "1 job that follows from them runs again too.")
    page.click("dialog footer button", "Retry 24 jobs")
    page.find(".empty", "No job matches.")
    page.show(f"w/{workflow}")
    page.find(".headline", f"completed: {JOBS + 1:,} jobs")


def test_a_log_follows_its_growth(page: FirefoxPage, owner: DashReader, tmp_path: Path) -> None:
    """Lines that a running job writes appear by themselves."""
    gate = tmp_path / "gate"
    command = f"echo first words; while [ ! -e {gate} ]; do sleep 0.05; done; echo last words"
    workflow = owner.create({"name": "talker", "jobs": [{"name": "talk", "command": command}]})
    owner.order("run", workflow, wait=0)
    job = owner.get("api/jobs", workflow_id=workflow)["items"][0]["id"]
    page.show(f"w/{workflow}/j/{job}")
    page.find("[role=log]", "first words")
    gate.touch()
    page.find("[role=log]", "last words")


def test_views_and_themes(page: FirefoxPage, owner: DashReader) -> None:
    """Each view is drawn in both themes, and the canvas of the graph and of the timeline is not empty."""
    jobs = [{"name": "a", "command": "true"}, {"name": "b", "command": "true", "depends_on": ["a"]}]
    workflow = owner.create({"name": "views", "jobs": jobs})
    owner.run_to_its_end(workflow)
    colour = "return getComputedStyle(document.body).backgroundColor"
    colours = set()
    for _ in range(2):
        for view in ("", "/jobs", "/graph", "/timeline", "/failures", "/runners", "/data", "/events", "/plots"):
            page.show(f"w/{workflow}{view}")
        colours.add(page.browser.execute_script(colour))
        page.click("button[aria-label$='theme']")
    assert len(colours) == 2
    drawn = """const canvas = document.querySelector("main canvas");
        const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        return data.some((value, at) => at % 4 === 3 && value > 0);"""
    for view in ("graph", "timeline"):
        page.show(f"w/{workflow}/{view}")
        page.find("main canvas")
        page.wait(lambda: page.browser.execute_script(drawn), f"{view} is drawn")
