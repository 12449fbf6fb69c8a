"""Write pictures of ``torc tui`` in its main states to docs/images: ``python docs/tui_screens.py``.

A server of its own on a temporary database runs small workflows; then keys are pressed, and each screen is stored.
"""

import asyncio
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from torc_framework.embedded.server import EmbeddedServer
from torc_framework.monitoring.context import WorkContext
from torc_framework.monitoring.identity import PROCESS, Identity, UpstreamServer
from torc_framework.monitoring.standalone import StandaloneServer
from torc_framework.plugins.manager import PluginManager
from torc_framework.tui.app import TuiApp
from torc_framework.tui.work.setup import TuiSetup

IMAGES: Final = Path(__file__).parent / "images"
SIZE: Final = (100, 24)
TORC: Final = (sys.executable, "-P", "-m", "torc_framework.cli.programs.torc")
SPEC: Final = """
name: sweep
resource_monitor: {granularity: time_series, sample_interval_seconds: 1}
resource_requirements:
  - {name: small, num_cpus: 1, memory: 64m, runtime: PT5M}
jobs:
  - {name: prepare, command: "echo preparing 40 files", resource_requirements: small}
  - name: train_{i}
    command: |
      echo epoch 1
      t=$(date +%s); while [ $(( $(date +%s) - t )) -lt $(( 1 + {i} % 4 )) ]; do :; done
      [ $(( {i} % 7 )) != 3 ] || { echo 'ValueError: shapes differ' >&2; exit 1; }
    parameters: {i: "1:24"}
    depends_on: [prepare]
    resource_requirements: small
  - {name: report, command: "true", depends_on_regexes: ["train_.*"], resource_requirements: small}
"""
ODD_SPEC: Final = """
name: odd
use_pending_failed: true
jobs:
  - name: convert_{i}
    command: "echo 'unexpected record' >&2; exit $(( 7 + {i} % 2 ))"
    parameters: {i: "1:6"}
"""
_FONT_FACE: Final = re.compile(r"\s*@font-face \{[^}]*\}")
"""Fonts that a picture would load from another site; the reader's own monospace font serves."""
STATES: Final[tuple[tuple[str, tuple[str, ...], str], ...]] = (
    ("", ("p",), "convert_1"),
    ("pending", ("space", "space"), "2 marked"),
    ("overview", ("q", "left", "down"), "ValueError: shapes differ"),
    ("failed-jobs", ("right", "down", "enter"), "(Esc clears)"),
    ("job", ("enter",), "CPU and memory over time"),
    ("plots", ("m",), "64 MiB requested"),
    ("log", ("q", "q", "l"), "ValueError"),
    ("retry", ("q", "T"), "Would retry"),
    ("filter", ("n", "slash", *["backspace"] * 200, *"status:failed peak"), "peak_mem:"),
    ("events", ("escape", "escape", "4"), "job_completed"),
    ("timeline", ("v", "down"), "(job "),
    ("graph", ("q", "8"), "dependencies"),
    ("delete", ("d",), "Deletes 26 jobs"),
    ("away", ("n", "1"), "could not connect"),
)
"""Name of each picture, the keys that lead to it, and a text that it shows; without a name only keys."""


async def _take(app: TuiApp, server: EmbeddedServer) -> None:
    async with app.run_test(size=SIZE) as pilot:
        for name, keys, text in STATES:
            await pilot.press(*keys)
            if name == "away":
                server.close()
                await pilot.press("r")
            await _until(pilot, text)
            if not name:
                continue
            picture = _FONT_FACE.sub("", app.export_screenshot(title="torc tui"))
            (IMAGES / f"tui-{name}.svg").write_text(picture, encoding="utf-8")


async def _until(pilot: Any, text: str) -> None:
    for _ in range(600):
        if text in pilot.app.export_screenshot(simplify=True).replace("&#160;", " "):
            return
        await pilot.pause(0.1)
    raise SystemExit(f"{text!r} does not appear")


def main() -> None:
    """Take the pictures."""
    with tempfile.TemporaryDirectory() as folder, EmbeddedServer(Path(folder) / "torc.db") as server:
        environment = {**os.environ, "TORC_API_URL": server.url}
        for name, spec in (("sweep", SPEC), ("odd", ODD_SPEC)):
            (Path(folder) / f"{name}.yaml").write_text(spec, encoding="utf-8")
            subprocess.run(
                [*TORC, "run", f"{name}.yaml"], cwd=folder, env=environment, check=False, capture_output=True
            )
        upstream = UpstreamServer(server.url)
        context = WorkContext(PluginManager.load, lambda _: {}, TORC, Path(folder), Path(folder) / "output")
        setup = TuiSetup(
            context,
            upstream,
            Identity(PROCESS, upstream, None),
            StandaloneServer(lambda: server, upstream),
            starts_server=False,
            own_user="ana",
            user=None,
        )
        setup.begin()
        asyncio.run(_take(TuiApp(setup), server))


if __name__ == "__main__":
    main()
