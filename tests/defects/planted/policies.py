"""Recovery policies, and plugins for waiting jobs, that break a promise; the suite of each names it."""

import random
import time
from types import SimpleNamespace
from typing import Any

from torc_framework.api import (
    ExitClass,
    FailedJob,
    PendingVerdict,
    RecoveryAction,
    RecoveryDecision,
)
from torc_framework.testing import PendingContract, PolicyContract

RETRY, FAIL = RecoveryAction.RETRY, RecoveryAction.FAIL


def of(decide: Any) -> Any:
    return SimpleNamespace(torc_decide_recovery=decide)


def decision(action: Any, **changes: Any) -> RecoveryDecision:
    return RecoveryDecision(action, "no", **changes)


def once(job: FailedJob, **changes: Any) -> RecoveryDecision:
    """Return the decision to retry, for the first recovery; then to fail."""
    if job.recoveries:
        return RecoveryDecision(FAIL, "no more")
    return RecoveryDecision(RETRY, "again", **changes)


def on(named: ExitClass, **changes: Any) -> Any:
    """Return a policy for one class, whose requests are functions of the job."""
    return of(
        lambda job: (
            once(job, **{name: make(job) for name, make in changes.items()})
            if job.failure.verdict.exit_class is named
            else None
        )
    )


class TestMemoryBeyondTheCeiling(PolicyContract):
    promise = "memory_bytes stays within the job's ceiling"
    plugin = on(ExitClass.OOM, memory_bytes=lambda job: job.memory_bytes * 2)


class TestTimeBeyondTheCeiling(PolicyContract):
    promise = "runtime_s stays within the job's ceiling"
    plugin = on(ExitClass.TIMEOUT, runtime_s=lambda job: job.runtime_s + 600)


class TestCpusBeyondTheCeiling(PolicyContract):
    promise = "num_cpus stays within the job's ceiling"
    plugin = on(ExitClass.NODE_FAILURE, num_cpus=lambda job: job.num_cpus + 1)


class TestBeyondForOneCode(PolicyContract):
    promise = "memory_bytes stays within the job's ceiling"
    plugin = of(lambda job: once(job, memory_bytes=job.memory_bytes * 2) if job.failure.return_code == 63 else None)


class TestBeyondByOne(PolicyContract):
    promise = "memory_bytes stays within the job's ceiling"
    plugin = of(lambda job: once(job, memory_bytes=(job.ceiling.memory_bytes or job.memory_bytes) + 1))


class TestMilliseconds(PolicyContract):
    promise = "runtime_s stays within the job's ceiling"
    plugin = on(ExitClass.TIMEOUT, runtime_s=lambda job: int(job.runtime_s * 1400))


class TestMemoryInMib(PolicyContract):
    promise = "memory_bytes never becomes smaller"
    plugin = on(ExitClass.OOM, memory_bytes=lambda job: job.memory_bytes * 2 // 2**20)


class TestLessTime(PolicyContract):
    promise = "runtime_s never becomes smaller"
    plugin = on(ExitClass.OOM, runtime_s=lambda job: job.runtime_s - 1)


class TestFewerCpus(PolicyContract):
    promise = "num_cpus never becomes smaller"
    plugin = on(ExitClass.PREFLIGHT, num_cpus=lambda job: max(1, job.num_cpus - 1))


class TestFailChangesMemory(PolicyContract):
    promise = "only a retry names new requests"
    plugin = of(
        lambda job: (
            RecoveryDecision(FAIL, "no", memory_bytes=job.memory_bytes)
            if job.failure.verdict.exit_class is ExitClass.SERVICE_ERROR
            else None
        )
    )


class TestCannotGrowChangesCpus(PolicyContract):
    promise = "only a retry names new requests"
    plugin = of(
        lambda job: (
            RecoveryDecision(RecoveryAction.CANNOT_GROW, "no", num_cpus=job.num_cpus)
            if job.ceiling.memory_bytes == job.memory_bytes
            else None
        )
    )


class TestDeferChangesTime(PolicyContract):
    promise = "only a retry names new requests"
    plugin = of(lambda job: RecoveryDecision(RecoveryAction.DEFER, "ask", runtime_s=1) if job.recoveries > 3 else None)


class TestHalfBytes(PolicyContract):
    promise = "memory_bytes of RecoveryDecision is of type int"
    plugin = on(ExitClass.OOM, memory_bytes=lambda job: job.memory_bytes * 1.0)


class TestAmountIsAText(PolicyContract):
    promise = "memory_bytes of RecoveryDecision is of type int"
    plugin = on(ExitClass.OOM, memory_bytes=lambda job: "8g")


class TestForever(PolicyContract):
    promise = "retry for ever"
    plugin = of(
        lambda job: RecoveryDecision(RETRY, "again") if job.failure.verdict.exit_class is ExitClass.EVICTED else None
    )


class TestByChance(PolicyContract):
    promise = "no randomness"
    plugin = of(lambda job: once(job) if job.recoveries == 0 and random.random() < 0.9 else None)


class TestWithJitter(PolicyContract):
    promise = "no randomness"
    plugin = on(ExitClass.TIMEOUT, runtime_s=lambda job: job.runtime_s + random.randint(0, 0))


class TestByTheClock(PolicyContract):
    promise = "no clock"
    plugin = of(lambda job: once(job) if time.time() > 0 and job.failure.return_code == 8 else None)


class TestCounts(PolicyContract):
    promise = "no memory"

    class plugin:
        calls = 0

        @classmethod
        def torc_decide_recovery(cls, job: FailedJob) -> RecoveryDecision | None:
            cls.calls += 1
            return once(job) if cls.calls % 3 else None


class TestChangesSettings(PolicyContract):
    promise = "leave the arguments as they are"

    @staticmethod
    def decide(job: FailedJob) -> RecoveryDecision | None:
        settings: Any = job.settings
        settings["memory_multiplier"] = settings.get("memory_multiplier", 1) + 1
        return RecoveryDecision(FAIL, "no")

    plugin = of(decide)


class TestChangesTheJob(PolicyContract):
    promise = "leave the arguments as they are"

    @staticmethod
    def decide(job: FailedJob) -> RecoveryDecision | None:
        object.__setattr__(job, "num_cpus", job.num_cpus + 1)
        return RecoveryDecision(FAIL, "no")

    plugin = of(decide)


class TestRaisesWithoutHistory(PolicyContract):
    promise = "never raise"
    plugin = of(lambda job: RecoveryDecision(FAIL, f"after {job.history[-1]}"))


class TestRaisesWithoutPeak(PolicyContract):
    promise = "never raise"
    plugin = of(lambda job: once(job) if job.failure.observation.peak_memory_bytes > job.memory_bytes else None)


class TestSleepy(PolicyContract):
    promise = "answer soon"

    @staticmethod
    def decide(job: FailedJob) -> RecoveryDecision | None:
        time.sleep(0.4)
        return RecoveryDecision(FAIL, "no")

    plugin = of(decide)


class TestWordlessDecision(PolicyContract):
    promise = "one sentence for people"
    plugin = of(lambda job: RecoveryDecision(FAIL, "") if job.failure.job_name == "nightly" else None)


class TestNeverDecides(PolicyContract):
    promise = "decides on some failed job"
    plugin = of(lambda job: None)


class TestCausesAreAText(PolicyContract):
    promise = "causes of RecoveryDecision is of type tuple"
    plugin = of(lambda job: decision(FAIL, causes="oom"))


class TestActionIsAText(PolicyContract):
    promise = "action of RecoveryDecision is of type RecoveryAction"
    plugin = of(lambda job: decision("retry") if job.recoveries == 0 else None)


class TestTooSure(PolicyContract):
    promise = "confidence is from 0 to 1"
    plugin = of(lambda job: RecoveryDecision(FAIL, "no", confidence=1.1))


class TestOptionsAreNoClass(PolicyContract):
    promise = "declared with option"
    plugin = SimpleNamespace(
        torc_decide_recovery=lambda job: RecoveryDecision(FAIL, "no"), torc_recovery_options=lambda: dict
    )


# --- waiting jobs -----------------------------------------------------------------------------------


def judging(judge: Any) -> Any:
    return SimpleNamespace(torc_classify_pending=judge)


class TestJudgesOthers(PendingContract):
    promise = "judge only the jobs"
    plugin = judging(lambda failures, context: {0: PendingVerdict(FAIL, "no", 0.5)})


class TestRaisesForNone(PendingContract):
    promise = "never raise"
    plugin = judging(lambda failures, context: {failures[0].job_id: PendingVerdict(FAIL, "no", 0.5)})


class TestJudgesNothing(PendingContract):
    promise = "gives a verdict on some waiting job"
    plugin = judging(lambda failures, context: {})


class TestFailsWithMemory(PendingContract):
    promise = "only a retry names new requests"
    plugin = judging(
        lambda failures, context: {each.job_id: PendingVerdict(FAIL, "no", 0.5, memory_bytes=5) for each in failures}
    )


class TestGuesses(PendingContract):
    promise = "no randomness"
    plugin = judging(
        lambda failures, context: {each.job_id: PendingVerdict(FAIL, "no", random.random()) for each in failures}
    )


class TestRetriesForever(PendingContract):
    promise = "no job is retried after"
    plugin = judging(lambda failures, context: {each.job_id: PendingVerdict(RETRY, "yes", 0.5) for each in failures})


class TestSlowJudge(PendingContract):
    promise = "answer soon"
    plugin = judging(lambda failures, context: time.sleep(1000))
