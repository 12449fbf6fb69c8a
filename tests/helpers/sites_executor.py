"""A launcher with several sites, all on this machine, whose faults are files.

A site whose ``.down`` exists in the folder ``state`` cannot begin, and the text of the file is the reason; one whose
``.slow`` exists begins when that is gone. One whose ``.cut`` exists accepts no attempts, and one whose ``.crash``
exists raises when it is polled, once.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attrs import define
from torc_local.launcher import LocalLauncher
from torc_local.options import LocalOptions

from torc_framework.api import (
    Attempt,
    ConfigError,
    Executor,
    LauncherEvent,
    LaunchError,
    LaunchSite,
    Resources,
    RunnerContext,
    hookimpl,
    option,
)

GIB = 1024**3


@define
class SitesOptions(LocalOptions):
    """Options of the executor ``sites``."""

    sites: str = option("a b", "Names of the sites, each with its CPUs and GPUs after colons.", metavar="NAMES")
    state: str = option(".", "Folder of the files that make faults.", metavar="FOLDER")

    def sizes(self) -> dict[str, list[int]]:
        """Return the CPUs and GPUs of each site."""
        return {name: [int(part) for part in rest] for name, *rest in (each.split(":") for each in self.sites.split())}


class SitesLauncher(LocalLauncher):
    """Runs attempts on this machine as if it were several."""

    name = "sites"
    description = "Several sites, all on this machine"
    Options = SitesOptions

    @classmethod
    def sites(cls, options: Any, context: RunnerContext) -> list[str]:
        if not options.sites:
            raise ConfigError("executor sites: no site is named")
        return [*options.sizes()]

    def __init__(self, options: SitesOptions, context: RunnerContext) -> None:
        down = self._file(options, context, "down")
        if down.exists():
            error = LaunchError(down.read_text() or "no answer")
            error.is_permanent = "permanent" in str(error)
            raise error
        while self._file(options, context, "slow").exists():
            time.sleep(0.02)
        super().__init__(options, context)
        self._cut, self._crash = self._file(options, context, "cut"), self._file(options, context, "crash")

    @staticmethod
    def _file(options: SitesOptions, context: RunnerContext, fault: str) -> Path:
        return Path(options.state) / f"{context.site}.{fault}"

    def launch_site(self) -> LaunchSite | None:
        sizes = self.options.sizes()[self.context.site]
        cpus, gpus = sizes[0] if sizes else 2, sizes[1] if len(sizes) > 1 else 0
        return LaunchSite(
            Resources(cpus, 64 * GIB, gpus),
            gpu_names=tuple(f"{self.context.site}{index}" for index in range(gpus)),
            hostname=f"host-{self.context.site}",
        )

    def start(self, attempts: Sequence[Attempt]) -> None:
        assert self.context.site, "without a site it only adopts"
        super().start(attempts)

    def poll(self) -> list[LauncherEvent]:
        if self._crash.exists():
            self._crash.unlink()
            raise RuntimeError("it was made to crash")
        self.accepts_attempts = not self.context.site or not self._cut.exists()
        return super().poll()

    @property
    def hindrance(self) -> str | None:  # type: ignore[override] # as in LocalLauncher
        """Why attempts cannot begin."""
        return super().hindrance if self.accepts_attempts else f"{self.context.site} was cut off"


@hookimpl
def torc_executors() -> list[type[Executor]]:
    """Offer the executor ``sites``."""
    return [SitesLauncher]
