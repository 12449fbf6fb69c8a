"""Measure the page of the dashboard with a large workflow, in a real browser.

usage: python benchmarks/dashboard.py [JOBS]

It prints a table; nothing passes or fails. It needs Debian's package ``chromium`` and the package ``playwright``.
"After the answer" is the time from the end of the server's answer to the frame that shows it; "CPU" is the time that
the page's thread worked, which other work on the machine does not lengthen as much.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from playwright.sync_api import CDPSession, Page

BIN: Final = Path(sys.executable).parent
JOBS: Final = 100_000
EVENTS: Final = 800_000
"""Events of a day at nine a second."""
FLAGS: Final = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--js-flags=--expose-gc"]
VIEWS: Final = {
    "overview": ("w/1", ".headline", "dash/workflows/1/overview"),
    "jobs": ("w/1/jobs", "[role=gridcell]", "views/jobs"),
    "graph": ("w/1/graph", "main canvas", "views/graph"),
}
"""Views by name: the address, what shows its content, and the end of the address of its first answer."""
_WATCH: Final = """(selector) => {
    window.shownAt = null;
    const look = () => {
        if (window.shownAt === null && document.querySelector(selector)) {
            requestAnimationFrame(() => { window.shownAt ??= performance.now(); });
        }
    };
    new MutationObserver(look).observe(document.body, {childList: true, subtree: true});
    look();
}"""
_FEED: Final = """async (count) => {
    const live = await import(new URL("static/core/live.js", document.baseURI));
    const data = (id) => ({job_id: id, job_name: `train_${id}`});
    const event = (id) => ({id, type: "job_started", severity: "info", timestamp: Date.now(), data: data(id)});
    for (let first = 0; first < count; first += 2000) {
        live.receive(Array.from({length: 2000}, (_, index) => event(first + index)));
        if (first % 40000 === 0) await new Promise((done) => setTimeout(done, 260));
    }
    await new Promise((done) => setTimeout(done, 600));
    return live.liveEvents.value.length;
}"""


@contextmanager
def running_dashboard(folder: Path) -> Iterator[str]:
    """Run ``torc-dash --standalone``; yield its URL."""
    flags = ["--standalone", "--port", "0", "--database", str(folder / "torc.db")]
    environment = {**os.environ, "HOME": str(folder)}
    process = subprocess.Popen(
        [BIN / "torc-dash", *flags], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        printed = next(line for line in process.stdout if line.startswith("Dashboard: "))
        yield printed.removeprefix("Dashboard: ").strip()
    finally:
        process.terminate()
        process.wait(60)


def make_workflow(folder: Path, jobs: int) -> None:
    """Create and initialize a workflow of so many jobs, and one that waits for all of them."""
    train = {"name": "train_{i}", "command": "true", "parameters": {"i": f"1:{jobs}"}}
    report = {"name": "report", "command": "true", "depends_on_regexes": ["train_.*"]}
    (folder / "spec.json").write_text(json.dumps({"name": "large", "jobs": [train, report]}))
    torc = [BIN / "torc", "--database", folder / "torc.db"]
    for words in (["workflows", "create", "spec.json"], ["workflows", "initialize", "1", "--yes"]):
        subprocess.run(
            [*torc, *words], cwd=folder, env={**os.environ, "HOME": str(folder)}, check=True, stdout=subprocess.DEVNULL
        )


def cpu_s(session: "CDPSession") -> float:
    """Return for how many seconds the page's thread has worked."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return float(next(each["value"] for each in metrics if each["name"] == "TaskDuration"))


def first_view(page: "Page", session: "CDPSession", base: str, name: str) -> tuple[float, float]:
    """Load the page at a view; return the milliseconds after the answer, and those of CPU since the load."""
    route, selector, answer = VIEWS[name]
    page.goto("about:blank")
    page.goto(f"{base}#/{route}")
    page.evaluate(_WATCH, selector)
    page.wait_for_function("() => window.shownAt !== null", timeout=120_000)
    script = """(end) => {
        const entries = performance.getEntriesByType("resource").filter(({name}) => name.split("?")[0].endsWith(end));
        return window.shownAt - entries[0].responseEnd}"""
    return float(page.evaluate(script, answer)), 1000 * cpu_s(session)


def heap_mb(page: "Page", session: "CDPSession") -> float:
    """Return the used heap after a collection of garbage, in megabytes."""
    session.send("HeapProfiler.collectGarbage")
    used: Any = page.evaluate("performance.memory.usedJSHeapSize")
    return float(used) / 1e6


def measure(page: "Page", base: str, jobs: int) -> None:
    """Print the rows."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    print(f"{jobs:,} jobs\n\n| what | after the answer, ms | CPU since the load, ms |\n|---|---|---|")
    for name in VIEWS:
        first_view(page, session, base, name)  # the server keeps what it computes at the first request
        after, worked = first_view(page, session, base, name)
        print(f"| first view: {name} | {after:.0f} | {worked:.0f} |", flush=True)
    page.goto(f"{base}#/w/1/jobs")
    grid = page.get_by_role("grid", name="Jobs")
    page.locator("[role=gridcell]").first.wait_for()
    begun = cpu_s(session)
    grid.press("End")
    page.get_by_role("gridcell", name="report").wait_for(timeout=60_000)
    print(f"| table: last row | | {1000 * (cpu_s(session) - begun):.0f} |")
    page.goto(f"{base}#/w/1/events")
    page.wait_for_selector("main h1")
    before, begun = heap_mb(page, session), cpu_s(session)
    kept = page.evaluate(_FEED, EVENTS)
    after = heap_mb(page, session)
    print(f"| {EVENTS:,} events, {kept:,} kept | | {1000 * (cpu_s(session) - begun):.0f} |")
    print(f"\nHeap before these events {before:.0f} MB, after them {after:.0f} MB.")


def main() -> None:
    """Measure."""
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else JOBS
    program = shutil.which("chromium")
    if program is None:
        sys.exit("no Chromium: install Debian's package 'chromium'")
    with tempfile.TemporaryDirectory() as name, running_dashboard(Path(name)) as url:
        make_workflow(Path(name), jobs)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(url)
            measure(page, url.partition("?")[0], jobs)
            browser.close()


if __name__ == "__main__":
    main()
