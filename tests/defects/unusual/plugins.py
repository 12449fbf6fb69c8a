"""Correct plugins of uncommon kinds, which pass their suites."""

import functools
import logging
import re
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from doc_pages import executor_of_the_docs

from torc_framework.api import (
    ExitClass,
    ExitObservation,
    ExitVerdict,
    FailedJob,
    Failure,
    HpcProfile,
    Partition,
    PendingVerdict,
    RecoveryAction,
    RecoveryDecision,
    RuleAction,
)
from torc_framework.testing import (
    ClassifierContract,
    ExecutorContract,
    HpcProfileContract,
    MatcherContract,
    PendingContract,
    PolicyContract,
)

CODES = dict.fromkeys(range(7100, 7200, 7), ExitClass.SERVICE_ERROR)
QUOTA = re.compile(r"quota (?P<name>\w+) exceeded", re.IGNORECASE)


class TestOneRareCode(ClassifierContract):
    plugin = SimpleNamespace(
        torc_classify_exit=lambda seen: (
            ExitVerdict(ExitClass.PREFLIGHT, "it said so", evidence=("exit_code",))
            if seen.exit_code == 20_345
            else None
        )
    )


class TestMethodWithTable(ClassifierContract):
    class Site:
        def __init__(self, codes: Mapping[int, ExitClass]) -> None:
            self.codes = codes

        def torc_classify_exit(self, observation: ExitObservation) -> ExitVerdict | None:
            code = observation.exit_code
            if code is None or code not in self.codes:
                return None
            logging.getLogger("site").info("code %d of the table", code)
            return ExitVerdict(self.codes[code], f"exit code {code} of the table", 0.7, ("exit_code",))

    plugin = Site(CODES)


class TestRegularExpression(ClassifierContract):
    @staticmethod
    @functools.wraps(len)
    def classify(seen: ExitObservation) -> ExitVerdict | None:
        for name in ("scheduler_reason", "launch_error"):
            if found := QUOTA.search(getattr(seen, name) or ""):
                return ExitVerdict(ExitClass.INFRA_ERROR, f"quota {found['name']}", evidence=(name,))
        return None

    plugin = SimpleNamespace(torc_classify_exit=classify)


class TestNestedRawValue(ClassifierContract):
    @staticmethod
    def classify(seen: ExitObservation) -> ExitVerdict | None:
        match seen.raw:
            case {"container": {"reason": "StartError"}} if seen.executor == "podman":
                return ExitVerdict(
                    ExitClass.LAUNCH_FAILURE, "the container did not start", evidence=("raw", "executor")
                )
        return None

    plugin = SimpleNamespace(torc_classify_exit=classify)


class TestGuessOf137(ClassifierContract):
    plugin = SimpleNamespace(
        torc_classify_exit=lambda seen: (
            ExitVerdict(ExitClass.OOM, "probably", 0.6, ("exit_code",))
            if seen.exit_code == 137 and seen.signal is None
            else None
        )
    )


class TestStopsAtTheCeiling(PolicyContract):
    @staticmethod
    def decide(job: FailedJob) -> RecoveryDecision | None:
        if job.failure.verdict.exit_class is not ExitClass.OOM:
            return None
        wanted = job.memory_bytes * 2
        if job.ceiling.excess(memory_bytes=wanted) or job.recoveries > 3:
            return RecoveryDecision(RecoveryAction.CANNOT_GROW, "no more", causes=("oom",))
        return RecoveryDecision(RecoveryAction.RETRY, "twice as much", wanted, causes=("oom",))

    plugin = SimpleNamespace(torc_decide_recovery=decide)


class TestRareDefer(PolicyContract):
    plugin = SimpleNamespace(
        torc_decide_recovery=lambda job: (
            RecoveryDecision(RecoveryAction.DEFER, "ask the group")
            if job.failure.job_name.startswith("calibrate-") and job.failure.return_code == 913
            else None
        )
    )


class TestService(PolicyContract):
    is_pure = False

    class plugin:
        calls = 0

        @classmethod
        def torc_decide_recovery(cls, job: FailedJob) -> RecoveryDecision | None:
            cls.calls += 1
            return RecoveryDecision(RecoveryAction.FAIL, f"answer {cls.calls}")


class TestMatcherOfLogs(MatcherContract):
    rules = ({"log_word": "CUDA error 719"},)
    wrong_rules = ({"log_word": 1},)

    @staticmethod
    def match(rule: Mapping[str, Any], failure: Failure) -> RuleAction | bool | None:
        if "log_word" not in rule:
            return None
        if failure.stderr_path is None or not Path(failure.stderr_path).is_file():
            return False
        text = Path(failure.stderr_path).read_text(errors="replace")
        return RuleAction.FAIL if rule["log_word"] in text else False

    plugin = SimpleNamespace(torc_match_failure=match, torc_failure_rule_keys=lambda: {"log_word": {"type": "string"}})


class TestMatcherOfRanges(MatcherContract):
    rules = ({"code_above": 200}, {"code_above": 0, "max_retries": 5})
    wrong_rules = ({"code_above": "many"},)
    plugin = SimpleNamespace(
        torc_match_failure=lambda rule, failure: (
            failure.return_code > rule["code_above"] if "code_above" in rule else None
        ),
        torc_failure_rule_keys=lambda: {"code_above": {"type": "integer"}},
    )


class TestPendingOnlyPatterns(PendingContract):
    @staticmethod
    def judge(failures: Any, context: Any) -> Any:
        found = {}
        for failure in failures:
            if failure.stderr_path and Path(failure.stderr_path).is_file():
                text = Path(failure.stderr_path).read_text(errors="replace")
                if "lustre: evicted by OST0042" in text and failure.attempt_id < 4:
                    found[failure.job_id] = PendingVerdict(RecoveryAction.RETRY, "the file system was away", 0.9)
        return found

    plugin = SimpleNamespace(torc_classify_pending=judge)


class TestSmallAndLargeCluster(HpcProfileContract):
    plugin = SimpleNamespace(
        torc_hpc_profiles=lambda: (
            HpcProfile(
                "classroom",
                partitions=(Partition("pi", 4, 921, 1800), Partition("debug", 8, 16_000, 600, max_nodes=1)),
                detect_hostname=r"^class\d+$",
            ),
            HpcProfile(
                "big",
                partitions=[  # type: ignore[arg-type]  # a list works as well
                    Partition("hugemem", 96, 12 * 2**20, 7 * 86_400),
                    Partition("endless", 64, 256_000, 365 * 86_400, requires_explicit_request=True),
                    Partition("knl", 272, 96_000, 59 * 60),
                    Partition("long", 128, 512_000, 864_000, gpus_per_node=8, gpu_type="mi300a", gpu_memory_gb=128),
                ],
                detect_env_var="LMOD_SYSTEM_NAME=big",
            ),
            HpcProfile("empty", detect_hostname="empty"),
        )
    )


class TestThreadedExecutor(ExecutorContract):
    """One that waits in a thread for each process and wakes the runner by a pipe."""

    only = "test_resources_are_released"

    class executor(executor_of_the_docs()):  # type: ignore[misc]  # it is read from the docs
        name = "threaded"

        def spawn(self, attempt: Any) -> Any:
            process = super().spawn(attempt)
            threading.Thread(target=self.wait, args=(process,), daemon=True).start()
            return process

        def wait(self, process: "subprocess.Popen[bytes]") -> None:
            process.wait()
