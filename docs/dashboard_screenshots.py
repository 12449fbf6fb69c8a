"""Take the pictures of the dashboard in ``docs/images``: real workflows on a real server, seen with a real browser.

usage: python docs/dashboard_screenshots.py [FOLDER]

It needs Debian's package ``chromium``. Look at the pictures before you commit them: nothing checks them.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from playwright.sync_api import Page

IMAGES: Final = Path(__file__).parent / "images"
BIN: Final = Path(sys.executable).parent
SIZE: Final = {"width": 1120, "height": 760}
SPECS: Final = {
    "climate": """
name: climate-study
description: Simulations of two seasons, and a summary
jobs:
  - {name: prepare, command: sleep 0.3}
  - name: simulate_{season}_{year}
    command: sleep 2
    depends_on: [prepare]
    parameters: {season: "['summer','winter']", year: "2000:2039"}
  - {name: summarize, command: sleep 1, depends_on_regexes: ["simulate_.*"]}
""",
    "training": """
name: training-sweep
description: Learning rates by depths; one depth does not fit
jobs:
  - {name: prepare, command: echo preparing data}
  - name: train_lr{lr}_depth{depth}
    command: |
      echo "reading 50000 samples"; printf '\\033[32mepoch 1\\033[0m loss 0.93\\n\\033[32mepoch 2\\033[0m loss 0.71\\n'
      if [ {depth} = 6 ]; then echo "Traceback (most recent call last):" >&2
      echo "ValueError: depth {depth} needs more than 8 channels" >&2; exit 3; fi; sleep 0.{depth}
    depends_on: [prepare]
    parameters: {lr: "[0.001,0.003,0.01,0.03,0.1]", depth: "2:6"}
  - {name: compare, command: echo comparing, depends_on_regexes: ["train_.*"]}
""",
    "memory": """
name: image-tiles
description: Samples of the use of resources are kept
resource_monitor: {enabled: true, granularity: time_series, sample_interval_seconds: 1}
resource_requirements:
  - {name: small, num_cpus: 1, memory: 400m, runtime: PT5M}
jobs:
  - name: stitch
    command: python3 grow.py
    resource_requirements: small
""",
    "verdicts": """
name: licence-server
use_pending_failed: true
jobs:
  - name: solve_{i}
    command: echo "solver, no licence for 4 cores" >&2; exit 42
    parameters: {i: "1:3"}
    failure_handler: network
failure_handlers:
  - {name: network, rules: [{exit_codes: [7], max_retries: 1}]}
""",
}
GROW: Final = """import time
data, begun = [], time.time()
while time.time() - begun < 12:
    data.append(b"x" * 12_000_000); sum(range(3_000_000))
"""


@contextmanager
def running_dashboard(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Run ``torc-dash --standalone``; yield its URL, and the environment for commands on its server."""
    environment = {**os.environ, "HOME": str(folder), "USER": "ana", "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    flags = ["--standalone", "--port", "0", "--database", str(folder / "torc.db")]
    process = subprocess.Popen(
        [BIN / "torc-dash", *flags], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        printed = next(line for line in process.stdout if line.startswith("Dashboard: "))
        yield printed.removeprefix("Dashboard: ").strip(), environment
    finally:
        process.terminate()
        process.wait(60)


@contextmanager
def workflows(folder: Path, environment: dict[str, str]) -> Iterator[None]:
    """Create workflows 1 to 4 in the order of `SPECS`; run all but the first to their ends, and the first meanwhile."""

    def torc(*words: str) -> None:
        command = [str(BIN / "torc"), "--database", str(folder / "torc.db"), *words]
        subprocess.run(command, cwd=folder, env=environment, check=False, stdout=subprocess.DEVNULL)

    (folder / "grow.py").write_text(GROW)
    for name, spec in SPECS.items():
        (folder / f"{name}.yaml").write_text(spec)
        torc("workflows", "create", f"{name}.yaml")
    for workflow in ("2", "3", "4"):
        torc("run", workflow)
    process = subprocess.Popen(
        [BIN / "torc", "--database", folder / "torc.db", "run", "1", "--max-parallel-jobs", "6"],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
    )
    try:
        time.sleep(12)  # some of its jobs have ended then, so that there is an estimate
        yield
    finally:
        process.terminate()
        process.wait(60)


def take_pictures(page: "Page", base: str, folder: Path) -> None:
    """Show each state and save its picture."""

    def show(name: str, route: str, *, saves: bool = True) -> None:
        page.goto(f"{base}#/{route}")
        page.wait_for_selector("main h1")
        page.wait_for_function("() => !document.querySelector('main .loading')")
        page.wait_for_timeout(700)
        if saves:
            save(name)

    def save(name: str) -> None:
        page.screenshot(path=folder / f"dashboard-{name}.png")

    show("overview", "w/1")
    show("workflows", "w")
    show("timeline", "w/1/timeline")
    show("graph", "w/1/graph")
    show("failures", "w/2/failures")
    page.get_by_role("button", name="Recover…").first.click()
    page.get_by_role("dialog").get_by_label("retry unknown").check()
    page.get_by_role("dialog").get_by_role("button", name="Preview").click()
    page.get_by_role("region", name="Changes").wait_for()
    save("recover")
    page.keyboard.press("Escape")
    show("jobs", "w/2/jobs?q=status:failed")
    page.get_by_role("grid").press("Enter")
    page.locator(".log-line").first.wait_for()
    save("job")
    show("sweep", "w/2/sweep?colour=seconds")
    show("plots", "w/3/plots")
    show("verdicts", "w/4/failures")
    show("wizard", "create/wizard", saves=False)
    page.get_by_label("Workflow name").fill("data-pipeline")
    page.get_by_role("button", name="Next").click()
    page.get_by_label("Job name").fill("preprocess")
    page.get_by_label("Command").fill("python preprocess.py")
    page.get_by_role("button", name="+ Add job").click()
    page.get_by_role("checkbox", name="preprocess").check()
    save("wizard")
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": 390, "height": 844})
    show("small-dark", "w/2")


def main() -> None:
    """Take all pictures."""
    images = Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES
    images.mkdir(parents=True, exist_ok=True)
    program = shutil.which("chromium")
    if program is None:
        sys.exit("no Chromium: install Debian's package 'chromium'")
    with (
        tempfile.TemporaryDirectory() as name,
        running_dashboard(Path(name)) as (url, environment),
        workflows(Path(name), environment),
        sync_playwright() as playwright,
    ):
        flags = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
        browser = playwright.chromium.launch(executable_path=program, args=flags)
        page = browser.new_page(viewport=SIZE)  # type: ignore[arg-type]  # a dict literal is a ViewportSize
        page.goto(url)
        take_pictures(page, url.partition("?")[0], images)
        browser.close()


if __name__ == "__main__":
    main()
