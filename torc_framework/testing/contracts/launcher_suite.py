"""What the suites of launchers have in common: attributes, the launcher under test, and its bench."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest

from torc_framework.api import Launcher
from torc_framework.testing.support.clauses import require
from torc_framework.testing.support.guarded_launcher import GuardedLauncher
from torc_framework.testing.support.launcher_bench import LauncherBench, context
from torc_framework.testing.support.suites import ContractSuite

SITES: Final = "sites answers with a list of at least one name, all different"


class LauncherSuite(ContractSuite):
    """The base of the tests of launchers.

    Attributes:
        executor: The launcher's class.
        options: Values of its options.
        patience_s: How long an event may take to arrive; clusters are slow.
        shares_files: Its attempts see the runner's folders; False for one that runs them elsewhere.
        sees_signals: It observes that a signal ended an attempt; one that does not reports the exit code 128+n.
        unseen_signals: Single signals that it cannot tell from an exit code, or of which attempts begin protected.
    """

    executor: ClassVar[type[Launcher]]
    options: ClassVar[Mapping[str, Any]] = {}
    patience_s: ClassVar[float] = 40.0
    shares_files: ClassVar[bool] = True
    sees_signals: ClassVar[bool] = True
    unseen_signals: ClassVar[frozenset[int]] = frozenset()

    def make_launcher(self, folder: Path) -> Launcher:
        """Return a launcher of the first site whose output goes to ``folder``; override it if yours needs more."""
        return self.executor(self.executor.Options(**self.options_in(folder)), context(folder, self.site))

    def options_in(self, folder: Path) -> Mapping[str, Any]:
        """Return the values of the options of a launcher whose output goes to ``folder``.

        Override it if they depend on the folder, for example where containers see it only if an option mounts it. It
        must also be the working folder of the attempts.
        """
        return self.options

    @property
    def site(self) -> str:
        """The site whose launcher is tested: the first of the executor's."""
        return self.sites()[0]

    def sites(self) -> Sequence[str]:
        """Return the executor's answer on its sites."""
        named = self.executor.sites(self.executor.Options(**self.options), context(Path.cwd()))
        is_list = isinstance(named, list | tuple) and all(isinstance(name, str) for name in named)
        require(is_list and 0 < len(named) == len(set(named)), SITES, named)
        return named

    @pytest.fixture
    def bench(self, tmp_path: Path) -> Iterator[LauncherBench]:
        """A launcher in a folder of its own; attempts that still run at the end are killed."""
        bench = self.make_bench(tmp_path)
        yield bench
        bench.finish()

    def make_bench(self, folder: Path) -> LauncherBench:
        """Return a bench with a new launcher, in a folder of its own."""
        folder.mkdir(exist_ok=True)
        return LauncherBench(folder, GuardedLauncher(self.make_launcher(folder)), self.patience_s)

    def _needs(self, capability: str) -> None:
        if not getattr(self.executor.capabilities, capability):
            pytest.skip(f"its capabilities do not say {capability}")

    def _needs_this_machine(self) -> None:
        """Skip a test whose attempts need the folders, shells and process ids of this machine."""
        self._needs_files()
        if self.executor.capabilities.runs_containers:
            pytest.skip("its containers have folders, shells and process ids of their own")

    def _needs_files(self) -> None:
        if not self.shares_files:
            pytest.skip("its attempts do not see the runner's folders")
