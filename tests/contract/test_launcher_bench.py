"""The bench of the executor suite kills attempts whose start the launcher has not reported."""

import time
from pathlib import Path
from typing import Any

from torc_local.launcher import LocalLauncher

from torc_framework.testing.support.launcher_bench import LauncherBench, context


class LateReports(LocalLauncher):
    """Runs attempts as usual; `poll` returns nothing for a while, as on a busy machine."""

    reports_from = float("inf")

    def poll(self) -> Any:
        """Return events from the time `reports_from` on."""
        return super().poll() if time.monotonic() >= self.reports_from else []


def test_attempts_whose_start_was_not_reported_are_killed(tmp_path: Path) -> None:
    """`finish` kills what was given to the launcher, so that `close` has nothing to wait for."""
    launcher = LateReports(LocalLauncher.Options(), context(tmp_path))
    bench = LauncherBench(tmp_path, launcher)
    bench.start(bench.attempt("echo up; exec sleep 300"))
    bench.wait_for("1.o")
    assert not bench.started
    launcher.reports_from = time.monotonic() + 0.5
    bench.finish()
    (end,) = bench.ended.values()
    assert end.signal == 9
