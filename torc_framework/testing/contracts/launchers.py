"""The contract suite of executors that launch."""

import json
import re
import time
from contextlib import suppress

from attrs import has

from torc_framework.api import Launcher, LaunchError, LaunchSite
from torc_framework.testing.contracts.launcher_ends import LauncherEndTests, LauncherGivenTests
from torc_framework.testing.contracts.launcher_lanes import LauncherAdoptionTests, LauncherLaneTests
from torc_framework.testing.contracts.launcher_stops import LauncherStopTests
from torc_framework.testing.support.clauses import answer, broken, require
from torc_framework.testing.support.end_checks import CLOCK_SLACK_S, EPOCH
from torc_framework.testing.support.guarded_launcher import CALL_LIMIT_S
from torc_framework.testing.support.launcher_bench import LauncherBench


class ExecutorContract(
    LauncherEndTests, LauncherGivenTests, LauncherStopTests, LauncherLaneTests, LauncherAdoptionTests
):
    """Tests that every executor that launches passes; attempts are short shell commands.

    Attributes:
        executor: The launcher's class.
        options: Values of its options.
        patience_s: How long an event may take to arrive; clusters are slow.
        shares_files: Its attempts see the runner's folders; False for one that runs them elsewhere.
        sees_signals: It observes that a signal ended an attempt; one that does not reports the exit code 128+n.
        unseen_signals: Single signals that it cannot tell from an exit code, or of which attempts begin protected.
    """

    def test_it_introduces_itself(self) -> None:
        """It has a name, a description, capabilities with their methods, and a class of options."""
        kind = self.executor
        name = getattr(kind, "name", None)
        is_word = isinstance(name, str) and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name)
        require(is_word, "an executor has a name of one word, for --executor", name)
        require(
            kind.description.strip(),
            "description says in a sentence where attempts run",
            kind,
        )
        require(kind.capabilities.can_launch, "capabilities of a Launcher say can_launch", kind.capabilities)
        require(has(kind.Options), "Options is an attrs class whose fields are declared with option()", kind.Options)
        overrides = {"survives_runner": "adopt", "queues": "queue", "follows": "follow"}
        for capability, method in overrides.items():
            if getattr(kind.capabilities, capability):
                own = getattr(kind, method) is not getattr(Launcher, method)
                require(own, f"an executor that says {capability} implements {method}", kind)

    def test_it_says_where_attempts_run(self, bench: LauncherBench) -> None:
        """`can_launch_here` is True or False, `launch_site` a `LaunchSite` or None, ``hindrance`` a text or None."""
        here = answer(self.executor.can_launch_here, "can_launch_here does not raise", limit_s=CALL_LIMIT_S)
        require(isinstance(here, bool), "can_launch_here answers True or False", here)
        said = bench.launcher.hindrance
        require(said is None or (isinstance(said, str) and said.strip()), "hindrance is a text or None", said)
        try:
            site = bench.launcher.launch_site()
        except LaunchError:
            return
        if site is not None:
            require(isinstance(site, LaunchSite), "launch_site answers with a LaunchSite or None", site)
            now = time.time()
            is_epoch = site.ends_at is None or now - CLOCK_SLACK_S <= site.ends_at <= now + 366 * 86_400
            require(is_epoch, f"ends_at of LaunchSite {EPOCH}", site.ends_at)
            require(json.loads(json.dumps(dict(site.facts))) == site.facts, "facts of LaunchSite are JSON values")

    def test_its_sites_have_names(self, bench: LauncherBench) -> None:
        """`sites` returns the same names when asked again, each of which a launcher can serve."""
        named = self.sites()
        require(list(self.sites()) == list(named), "sites answers the same when asked again", named)
        accepts = bench.launcher.accepts_attempts
        require(isinstance(accepts, bool), "accepts_attempts is True or False", accepts)
        with suppress(LaunchError):
            site = bench.launcher.launch_site()
            host = None if site is None else site.hostname
            is_name = host is None or (isinstance(host, str) and host.strip() and host.isprintable())
            require(is_name, "hostname of LaunchSite is a name or None", host)

    def test_its_state_can_be_stored(self, bench: LauncherBench) -> None:
        """`state` returns JSON values: they are stored with the runner's record."""
        for _ in range(2):
            state = bench.launcher.state()
            try:
                stored: object = json.loads(json.dumps(state))
            except (TypeError, ValueError) as error:
                broken("state() answers with JSON values", error)
            require(stored == state and isinstance(state, dict), "state() answers with JSON values", state)
            bench.run(bench.attempt("true", job_id=len(bench.ended) + 1))
