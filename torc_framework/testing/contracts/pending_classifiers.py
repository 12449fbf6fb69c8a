"""The contract suite of plugins that give verdicts on jobs in ``pending_failed``."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest
from attrs import evolve

from torc_framework.api import Failure, PendingContext, PendingVerdict, RecoveryAction
from torc_framework.testing.support.clauses import answer, broken, require, require_types
from torc_framework.testing.support.constants import Constants, constants_of_plugin
from torc_framework.testing.support.generated_values import drawn_once, for_all, mixed
from torc_framework.testing.support.purity import require_same
from torc_framework.testing.support.strategies import failures
from torc_framework.testing.support.suites import ContractSuite
from torc_framework.testing.support.typical_values import typical_failures

_TYPES: Final[Mapping[str, type | tuple[type, ...]]] = {
    "action": RecoveryAction,
    "reason": str,
    "confidence": (float, int),
    "evidence": (tuple, list),
    "memory_bytes": (int, type(None)),
    "runtime_s": (int, type(None)),
    "num_cpus": (int, type(None)),
    "judge": str,
    "judge_kind": str,
}
_AMOUNTS: Final = ("memory_bytes", "runtime_s", "num_cpus")
_ANY_FAILURE: Final = failures()
_MOST_FAILURES: Final = 400
_LOG_LINES: Final = 400
CALL_LIMIT_S: Final = 10.0
"""How long judging a few jobs without a service may take."""


class PendingContract(ContractSuite):
    """Tests that every plugin that gives verdicts on waiting jobs passes.

    Attributes:
        plugin: The module or object with ``torc_classify_pending``.
        settings: Options as the command gives them, without those that would ask a service outside.
        most_attempts: Attempts after which it must not answer retry any more.
        is_pure: It answers the same whenever asked the same; False for one that asks a service.
    """

    plugin: ClassVar[Any]
    settings: ClassVar[Mapping[str, Any]] = {}
    most_attempts: ClassVar[int] = 100
    is_pure: ClassVar[bool] = True

    @property
    def _constants(self) -> Constants:
        found: Constants = self._once("_found", lambda: constants_of_plugin(self.plugin, "torc_classify_pending"))
        return found

    @pytest.fixture
    def logs(self, tmp_path: Path) -> Sequence[tuple[str, str]]:
        """Paths of logs with the words of the plugin, some for each."""
        texts = [text for text in self._constants.texts if "\n" not in text][:_LOG_LINES]
        pairs = []
        for number, start in enumerate(range(0, len(texts), 20)):
            out, err = tmp_path / f"{number}.o", tmp_path / f"{number}.e"
            for path in (out, err):
                path.write_text("".join(f"{text}\n" for text in texts[start : start + 20]), errors="replace")
            pairs.append((str(out), str(err)))
        return pairs

    def _waiting(self, logs: Sequence[tuple[str, str]] = ()) -> list[list[Failure]]:
        """Return lists of waiting jobs with different ids."""

        def made() -> list[Failure]:
            typical = list(typical_failures(self._constants))
            chosen = typical[:: max(1, len(typical) // _MOST_FAILURES)]
            return [*chosen, *mixed(typical, 100), *drawn_once(_ANY_FAILURE, 40)]

        found: list[Failure] = self._once("_made", made)
        with_logs = [
            evolve(found[place % len(found)], stdout_path=out, stderr_path=err) for place, (out, err) in enumerate(logs)
        ]
        numbered = [evolve(failure, job_id=number) for number, failure in enumerate([*with_logs, *found], 1)]
        return [[], *[numbered[start : start + 5] for start in range(0, len(numbered), 5)]]

    def _judge(self, waiting: Sequence[Failure]) -> Mapping[int, PendingVerdict]:
        context = PendingContext(1, settings=dict(self.settings))
        clause = "never raise for any failure; leave out jobs without a verdict"
        verdicts: Mapping[int, PendingVerdict] = answer(
            self.plugin.torc_classify_pending, clause, waiting, context, limit_s=CALL_LIMIT_S
        )
        require(isinstance(verdicts, Mapping), "answer with verdicts by job id", verdicts)
        return verdicts

    def test_it_judges_the_jobs_that_it_is_asked_about(self, logs: Sequence[tuple[str, str]]) -> None:
        """Verdicts are on the given jobs alone, with a reason and a confidence from 0 to 1."""

        def one(waiting: list[Failure]) -> None:
            verdicts = self._judge(waiting)
            asked = {failure.job_id for failure in waiting}
            require(asked.issuperset(verdicts), "judge only the jobs that you are asked about", sorted(verdicts))
            for verdict in verdicts.values():
                require(isinstance(verdict, PendingVerdict), "a verdict is a PendingVerdict", verdict)
                require_types(verdict, _TYPES, "PendingVerdict")
                require(verdict.reason.strip(), "the reason is one sentence for people, never empty", verdict)
                require(0 <= verdict.confidence <= 1, "confidence is from 0 to 1; 1 is proof", verdict)
                kinds = "plugin", "agent"
                require(verdict.judge_kind in kinds, "judge_kind is plugin, or agent if an agent was asked", verdict)
                amounts = [amount for name in _AMOUNTS if (amount := getattr(verdict, name)) is not None]
                is_retry = verdict.action is RecoveryAction.RETRY
                require(is_retry or not amounts, "only a retry names new requests", verdict)
                require(all(amount > 0 for amount in amounts), "requests are above 0", verdict)

        for_all(self._waiting(logs), one)

    def test_it_judges_some_job(self, logs: Sequence[tuple[str, str]]) -> None:
        """It gives a verdict on at least one job."""
        is_judged = any(self._judge(waiting) for waiting in self._waiting(logs))
        require(is_judged, "the plugin gives a verdict on some waiting job", "no verdict in the whole suite")

    def test_it_answers_the_same(self, logs: Sequence[tuple[str, str]]) -> None:
        """Verdicts depend on the failures and their logs alone, unless `is_pure` is False."""
        if self.is_pure:
            some = self._waiting(logs)
            for_all(some[:: max(1, len(some) // 20)], lambda waiting: require_same(self._judge, waiting))

    def test_it_ends(self) -> None:
        """A job that always fails in the same way gets no retry after `most_attempts`."""

        def one(waiting: list[Failure]) -> None:
            last = [evolve(failure, attempt_id=self.most_attempts) for failure in waiting]
            for verdict in self._judge(last).values():
                if verdict.action is RecoveryAction.RETRY:
                    broken(f"no job is retried after {self.most_attempts} attempts", verdict)

        for_all(self._waiting(), one)
