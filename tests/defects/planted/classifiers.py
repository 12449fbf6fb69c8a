"""Classifiers that break a promise; the suite of each names it."""

import datetime
import os
import random
import re
import time
from types import SimpleNamespace
from typing import Any

from attrs import evolve

from torc_framework.api import ExitClass, ExitObservation, ExitVerdict
from torc_framework.testing import ClassifierContract

TABLE = {4711: ExitClass.INFRA_ERROR, 4712: ExitClass.PREFLIGHT}
PATTERN = re.compile(r"(x+x+)+y")


def of(classify: Any) -> Any:
    return SimpleNamespace(torc_classify_exit=classify)


def verdict(**changes: Any) -> ExitVerdict:
    values: dict[str, Any] = {"exit_class": ExitClass.OOM, "reason": "because", "evidence": ("exit_code",)}
    return ExitVerdict(**(values | changes))


def by_code(code: int, **changes: Any) -> Any:
    """Return a classifier for one exit code."""
    return of(lambda seen: verdict(**changes) if seen.exit_code == code else None)


class TestRandomForOneCode(ClassifierContract):
    promise = "no randomness"

    @staticmethod
    def classify(seen: ExitObservation) -> ExitVerdict | None:
        return verdict(exit_class=random.choice(list(ExitClass))) if seen.exit_code == 77 else None

    plugin = of(classify)


class TestSeldomRandom(ClassifierContract):
    promise = "no randomness"
    plugin = of(lambda seen: None if os.urandom(1) == b"\0" else verdict() if seen.exit_code == 3 else None)


class TestRandomConfidence(ClassifierContract):
    promise = "no randomness"
    plugin = of(lambda seen: verdict(confidence=random.random()) if seen.exit_code == 9000 else None)


class TestByTheHour(ClassifierContract):
    promise = "no clock"
    plugin = of(
        lambda seen: verdict() if seen.exit_code == 7 and datetime.datetime.now(datetime.UTC).hour < 25 else None
    )


class TestByAge(ClassifierContract):
    promise = "no clock"
    plugin = of(lambda seen: verdict() if seen.exit_code == 7 and (seen.ended_at or 0) < time.time() else None)


class TestByEnvironment(ClassifierContract):
    promise = "no environment"
    plugin = of(lambda seen: verdict() if seen.exit_code == 7 and os.environ.get("SITE") is None else None)


class TestWithMemory(ClassifierContract):
    promise = "no memory"

    class plugin:
        known: set[int | None] = set()

        @classmethod
        def torc_classify_exit(cls, seen: ExitObservation) -> ExitVerdict | None:
            if seen.exit_code in cls.known:
                return None
            cls.known.add(seen.exit_code)
            return verdict() if seen.exit_code == 5 else None


class TestOverConfidentForOneCode(ClassifierContract):
    promise = "confidence is from 0 to 1"
    plugin = by_code(4713, confidence=100)


class TestPercentForAWord(ClassifierContract):
    promise = "confidence is from 0 to 1"
    plugin = of(
        lambda seen: (
            verdict(confidence=95.0, evidence=("scheduler_reason",))
            if "QuotaExceeded" in (seen.scheduler_reason or "")
            else None
        )
    )


class TestCertainOf137(ClassifierContract):
    promise = "alone proves no signal"
    plugin = by_code(137)


class TestConfidenceIsAWord(ClassifierContract):
    promise = "confidence of ExitVerdict is of type float"
    plugin = by_code(17, confidence="high")


class TestFalseEvidenceForOneCode(ClassifierContract):
    promise = "cite only what was seen"
    plugin = by_code(4242, evidence=("exit_code", "peak_memory_bytes"))


class TestEvidenceNotRead(ClassifierContract):
    promise = "the classifier reads each cited field"
    plugin = by_code(31, evidence=("exit_code", "executor"))


class TestEvidenceIsFalse(ClassifierContract):
    promise = "cite only what was seen"
    plugin = by_code(12, evidence=("exit_code", "lost"))


class TestEvidenceOfNothingMissing(ClassifierContract):
    promise = "cite only what was seen"
    plugin = by_code(12, evidence=("exit_code", "missing_outputs"))


class TestEvidenceIsASentence(ClassifierContract):
    promise = "nothing else"
    plugin = by_code(12, evidence=("the exit code is 12",))


class TestEvidenceIsAText(ClassifierContract):
    promise = "evidence is a tuple of names"
    plugin = by_code(12, evidence="exit_code")


class TestNoEvidence(ClassifierContract):
    promise = "cite what a certain verdict rests on"
    plugin = by_code(12, evidence=())


class TestAnotherCodeInTheReason(ClassifierContract):
    promise = "was observed"
    plugin = by_code(12, reason="ended with exit code 14")


class TestNoReason(ClassifierContract):
    promise = "reason of ExitVerdict is of type str"
    plugin = by_code(4711, reason=None)


class TestEmptyReason(ClassifierContract):
    promise = "one sentence for people"
    plugin = by_code(4711, reason=" ")


class TestClassIsAText(ClassifierContract):
    promise = "one of ExitClass"
    plugin = by_code(4711, exit_class="oom")


class TestNeverAnswers(ClassifierContract):
    promise = "the classifier answers some ending"
    plugin = of(lambda seen: None)


class TestExampleIsPassedOn(ClassifierContract):
    promise = "answers the suite's examples"
    plugin = by_code(44)
    examples = (ExitObservation("local", exit_code=45),)


class TestTableOfCodesWithoutEvidence(ClassifierContract):
    promise = "cite what a certain verdict rests on"
    plugin = of(lambda seen: ExitVerdict(TABLE[seen.exit_code], "in the table") if seen.exit_code in TABLE else None)


class TestRawCode(ClassifierContract):
    promise = "confidence is from 0 to 1"
    plugin = of(lambda seen: verdict(confidence=2, evidence=("raw",)) if seen.raw.get("pod") == {"code": 918} else None)


class TestRaisesWithoutTimes(ClassifierContract):
    promise = "never raise"
    plugin = of(lambda seen: verdict() if seen.exit_code == 28 and seen.ended_at - seen.started_at > 1 else None)


class TestRaisesOnNone(ClassifierContract):
    promise = "never raise"
    plugin = of(lambda seen: verdict() if seen.scheduler_reason.startswith("x") else None)


class TestRaisesOnUnicode(ClassifierContract):
    promise = "never raise"
    plugin = of(lambda seen: verdict() if (seen.launch_error or "").encode("ascii") == b"x" else None)


class TestExits(ClassifierContract):
    promise = "never raise"

    @staticmethod
    def classify(seen: ExitObservation) -> ExitVerdict | None:
        if seen.exit_code == 99:
            raise SystemExit(1)
        return None

    plugin = of(classify)


class TestBacktracks(ClassifierContract):
    promise = "answer soon"
    plugin = of(
        lambda seen: (
            verdict(evidence=("scheduler_reason",))
            if re.search(r"(\s*\w*\s*)*;", seen.scheduler_reason or "")
            else None
        )
    )


class TestSleeps(ClassifierContract):
    promise = "answer soon"

    @staticmethod
    def classify(seen: ExitObservation) -> ExitVerdict | None:
        time.sleep(0.5)
        return verdict() if seen.exit_code == 1 else None

    plugin = of(classify)


class TestBlocks(ClassifierContract):
    promise = "answer soon"

    @staticmethod
    def classify(seen: ExitObservation) -> ExitVerdict | None:
        if seen.exit_code == 61:
            time.sleep(1000)
        return None

    plugin = of(classify)


class TestChangesTheObservation(ClassifierContract):
    promise = "leave the arguments as they are"

    @staticmethod
    def classify(seen: ExitObservation) -> ExitVerdict | None:
        raw: Any = seen.raw
        raw["seen"] = 1
        return verdict() if seen.exit_code == 2 else None

    plugin = of(classify)


class TestLostIsSuccess(ClassifierContract):
    promise = "is no success"
    plugin = of(
        lambda seen: verdict(exit_class=ExitClass.SUCCESS, evidence=("executor",)) if seen.executor == "local" else None
    )


class TestReadsAFile(ClassifierContract):
    promise = "no files"

    @staticmethod
    def classify(seen: ExitObservation) -> ExitVerdict | None:
        with open("/proc/meminfo") as file:
            file.read()
        return verdict() if seen.exit_code == 2 else None

    plugin = of(classify)


class TestAnswersWithAText(ClassifierContract):
    promise = "an ExitVerdict, or None"
    plugin = of(lambda seen: "oom" if seen.signal == 9 else None)


class TestAnswersWithAnother(ClassifierContract):
    promise = "no memory"

    class plugin:
        last = ExitObservation("x")

        @classmethod
        def torc_classify_exit(cls, seen: ExitObservation) -> ExitVerdict | None:
            last, cls.last = cls.last, seen
            return evolve(verdict(), reason=f"after {last.exit_code}") if seen.exit_code == 1 else None
