"""The contract suites find faults: each fault below breaks one clause, and the message names it."""

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from attrs import evolve
from doc_pages import executor_of_the_docs
from sample_allocator import SampleAllocator
from waiting import let_pass

from torc_framework.api import (
    ActionType,
    Allocation,
    AllocationError,
    AttemptEnded,
    AttemptKey,
    Capabilities,
    ExitClass,
    ExitVerdict,
    HpcProfile,
    Launcher,
    Partition,
    RecoveryAction,
    RecoveryDecision,
)
from torc_framework.testing import (
    ActionTypeContract,
    AllocatorContract,
    ClassifierContract,
    ExecutorContract,
    FakeBatchSystem,
    HpcProfileContract,
    MatcherContract,
    PolicyContract,
)
from torc_framework.testing.contracts import allocators
from torc_framework.testing.support.launcher_bench import LauncherBench

T = TypeVar("T")

if TYPE_CHECKING:

    class Nice(Launcher):
        """What the docs' executor has, which mypy cannot read."""

        live: dict[AttemptKey, tuple["subprocess.Popen[bytes]", Any]]

        def poll(self) -> list[Any]: ...
        def start(self, attempts: Sequence[Any]) -> None: ...
        def stop(self, keys: Any, *, force: bool) -> None: ...

else:
    Nice = executor_of_the_docs()


def variant(suite: type[T], **attributes: Any) -> T:
    """Return a suite with these attributes."""
    kind: type[T] = type(suite.__name__, (suite,), attributes)
    return kind()


def breaks(clause: str) -> Any:
    """Expect the failure of a clause."""
    return pytest.raises(AssertionError, match=f"the contract says: .*{clause}")


# --- executors --------------------------------------------------------------------------------------


class SignalsAsCodes(Nice):
    def poll(self) -> list[Any]:
        return [
            evolve(news, observation=evolve(news.observation, signal=None, exit_code=128 + news.observation.signal))
            if isinstance(news, AttemptEnded) and news.observation.signal
            else news
            for news in super().poll()
        ]


class EndsTwice(Nice):
    def poll(self) -> list[Any]:
        return [news for news in super().poll() for _ in range(1 + isinstance(news, AttemptEnded))]


class NeverEnds(Nice):
    def poll(self) -> list[Any]:
        return [news for news in super().poll() if not isinstance(news, AttemptEnded)]


class Raises(Nice):
    def start(self, attempts: Sequence[Any]) -> None:
        for attempt in attempts:
            Path(attempt.working_dir).resolve(strict=True)
        super().start(attempts)


class ForgetsEnvironment(Nice):
    def start(self, attempts: Sequence[Any]) -> None:
        super().start([evolve(attempt, environment={}) for attempt in attempts])


class Waits(Nice):
    def start(self, attempts: Sequence[Any]) -> None:
        super().start(attempts)
        for process, _ in self.live.values():
            process.wait()


class StopsLeaders(Nice):
    def stop(self, keys: Any, *, force: bool) -> None:
        for key in keys:
            if key in self.live:
                os.kill(self.live[key][0].pid, 9 if force else 15)


class Boasts(Nice):
    capabilities = Capabilities(can_launch=True, queues=True)


@pytest.mark.parametrize(
    ("executor", "test", "clause"),
    [
        (SignalsAsCodes, "test_signals_arrive_as_signals", "has that signal"),
        (EndsTwice, "test_each_attempt_has_one_start_and_one_end", "exactly one AttemptEnded"),
        (NeverEnds, "test_each_attempt_has_one_start_and_one_end", "exactly one AttemptEnded"),
        (Raises, "test_what_cannot_be_started_is_reported", "start does not raise"),
        (ForgetsEnvironment, "test_the_attempts_environment_wins", "environment wins"),
        (Waits, "test_starting_does_not_wait", "start returns at once"),
        (StopsLeaders, "test_a_forced_stop_is_sigkill_to_all_processes", "children included"),
    ],
)
def test_faults_of_executors(executor: Any, test: str, clause: str, tmp_path: Path) -> None:
    """The bench is cleaned up as it would be by its fixture."""
    suite = variant(ExecutorContract, executor=executor, patience_s=1.0)
    bench = LauncherBench(tmp_path, suite.make_launcher(tmp_path), suite.patience_s)
    more = {"number": 9} if "signals_arrive" in test else {}
    with breaks(clause):
        getattr(suite, test)(bench, **more)
    launcher: Any = bench.launcher
    for process, _ in launcher.live.values():
        if process.returncode is None:
            os.killpg(process.pid, 9)
            process.wait()
    if (tmp_path / "inner").exists():
        os.kill(int((tmp_path / "inner").read_text()), 9)


def test_capabilities_are_promises() -> None:
    """A launcher with the capability ``queues`` implements the method."""
    suite = variant(ExecutorContract, executor=Boasts)
    with breaks("says queues implements queue"):
        suite.test_it_introduces_itself()


# --- pure hooks -------------------------------------------------------------------------------------


def suite_of(kind: Any, hook: str, function: Callable[..., Any], **more: Any) -> Any:
    """Return a suite of a plugin with one hook."""
    return type("Suite", (kind,), {"plugin": SimpleNamespace(**{hook: function, **more.pop("hooks", {})}), **more})()


def verdict(**changes: Any) -> Callable[[Any], ExitVerdict]:
    """Return a classifier that always gives this verdict."""
    answer = evolve(ExitVerdict(ExitClass.OOM, "because", 1.0, ("executor",)), **changes)
    return lambda observation: answer


@pytest.mark.parametrize(
    ("classify", "test", "clause"),
    [
        (
            lambda seen: seen.signal + 1 and None,
            "test_it_answers_any_observation_with_a_verdict_or_none",
            "never raise",
        ),
        (lambda seen: "oom", "test_it_answers_any_observation_with_a_verdict_or_none", "an ExitVerdict, or None"),
        (verdict(confidence=1.5), "test_confidence_is_between_nothing_and_proof", "from 0 to 1"),
        (verdict(reason=" "), "test_the_reason_is_a_sentence", "one sentence for people"),
        (verdict(evidence=("memory",)), "test_evidence_is_cited_and_was_seen", "fields of ExitObservation"),
        (verdict(evidence=("signal",)), "test_evidence_is_cited_and_was_seen", "cite only what was seen"),
        (verdict(evidence=()), "test_evidence_is_cited_and_was_seen", "cite what a certain verdict rests on"),
        (verdict(exit_class=ExitClass.SUCCESS), "test_what_never_ran_did_not_succeed", "is no success"),
        (
            lambda seen: ExitVerdict(ExitClass.OOM, f"{time.time()} {random.random()}", 1.0, ("executor",)),
            "test_it_answers_from_the_observation_alone",
            "no clock",
        ),
        (
            lambda seen: Path("/proc/meminfo").read_text() and None,
            "test_it_answers_from_the_observation_alone",
            "no files",
        ),
    ],
)
def test_faults_of_classifiers(classify: Any, test: str, clause: str) -> None:
    """Found among generated observations."""
    with breaks(clause):
        getattr(suite_of(ClassifierContract, "torc_classify_exit", classify), test)()


@pytest.mark.parametrize(
    ("match", "keys", "test", "clause"),
    [
        (lambda rule, failure: True, {"mine": {}}, "test_it_passes_on_rules_of_others", "answer None"),
        (lambda rule, failure: None, {"mine": {}}, "test_it_has_an_opinion_on_its_own_rules", "answer True, False"),
        (lambda rule, failure: rule["other"], {"mine": {}}, "test_it_has_an_opinion_on_its_own_rules", "never raise"),
        (None, {"max_retries": {}}, "test_it_owns_keys_with_schemas", "belong to the core"),
        (None, {"mine": {"type": "text"}}, "test_it_owns_keys_with_schemas", "valid JSON schema"),
        (None, {"mine": {"type": "string"}}, "test_valid_rules_pass_and_wrong_ones_do_not", "a valid rule passes"),
        (None, {"mine": {}}, "test_valid_rules_pass_and_wrong_ones_do_not", "a wrong rule is refused"),
        (None, {"mine": {}, "more": {}}, "test_valid_rules_pass_and_wrong_ones_do_not", "use every key"),
    ],
)
def test_faults_of_matchers(match: Any, keys: Any, test: str, clause: str) -> None:
    """In keys, schemas and answers."""
    suite = suite_of(
        MatcherContract,
        "torc_match_failure",
        match,
        hooks={"torc_failure_rule_keys": lambda: keys},
        rules=({"mine": 1},),
        wrong_rules=({"mine": "x"},),
    )
    with breaks(clause):
        getattr(suite, test)()


def retry(**changes: Any) -> Callable[[Any], RecoveryDecision]:
    """Return a policy that always retries."""
    return lambda job: RecoveryDecision(RecoveryAction.RETRY, "again", **{k: f(job) for k, f in changes.items()})


@pytest.mark.parametrize(
    ("decide", "test", "clause"),
    [
        (retry(), "test_it_ends", "retry for ever"),
        (retry(memory_bytes=lambda job: job.memory_bytes // 2), "test_requests_never_shrink", "never becomes smaller"),
        (retry(memory_bytes=lambda job: job.memory_bytes * 8), "test_nothing_is_asked_for_beyond", "within the job's"),
        (
            lambda job: RecoveryDecision(RecoveryAction.FAIL, "no", runtime_s=job.runtime_s),
            "test_only_a_retry_changes_requests",
            "only a retry",
        ),
        (lambda job: job.history[0] and None, "test_it_answers_any_failed_job", "never raise"),
    ],
)
def test_faults_of_policies(decide: Any, test: str, clause: str) -> None:
    """Found among generated jobs."""
    suite = suite_of(PolicyContract, "torc_decide_recovery", decide)
    (name,) = (each for each in dir(suite) if each.startswith(test))
    with breaks(clause):
        getattr(suite, name)()


# --- offers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "test", "clause"),
    [
        (HpcProfile("a b", detect_env_var="A=b"), "test_profiles_have_names_of_their_own", "one word"),
        (HpcProfile("a"), "test_profiles_can_be_recognised", "how it is recognised"),
        (HpcProfile("a", detect_env_var="A"), "test_profiles_can_be_recognised", "NAME=value"),
        (HpcProfile("a", detect_hostname="("), "test_profiles_can_be_recognised", "regular expression"),
        (HpcProfile("a", detect_hostname=".*"), "test_profiles_can_be_recognised", "every machine"),
        (
            HpcProfile("a", partitions=(Partition("p", 1, 1, 1), Partition("p", 1, 1, 1))),
            "test_partitions_have_names_and_amounts",
            "names of partitions",
        ),
        (
            HpcProfile("a", partitions=(Partition("p", 1, 1, 1, min_nodes=3, max_nodes=2),)),
            "test_partitions_have_names_and_amounts",
            "some number of nodes",
        ),
        (
            HpcProfile("a", partitions=(Partition("p", 1, 1, 1, requires_explicit_request=True),)),
            "test_something_can_be_asked_for_without_a_name",
            "need not be named",
        ),
    ],
)
def test_faults_of_profiles(profile: HpcProfile, test: str, clause: str) -> None:
    """The message names the profile."""
    with breaks(clause):
        getattr(suite_of(HpcProfileContract, "torc_hpc_profiles", lambda: [profile]), test)()


def never_looks(config: Any, context: Any) -> None:
    let_pass(3)


def test_faults_of_action_types(tmp_path: Path) -> None:
    """One that does not look whether its runner is ending; one whose schema takes everything."""
    offered = ActionType("a", {"type": "object"}, never_looks)
    suite = variant(ActionTypeContract, action_type=offered, configs=({},), endless_configs=({},), patience_s=0.2)
    with breaks("ends when is_stopping"):
        suite.test_it_ends_with_its_runner(tmp_path)
    with breaks("refuses wrong and unknown keys"):
        suite.test_its_schema_tells_right_from_wrong()


class LosesSome(SampleAllocator):
    def allocate(self, request: Any) -> list[Allocation]:
        return super().allocate(request)[:1]


class AsksOneByOne(SampleAllocator):
    def alive(self, allocations: Any) -> dict[str, bool]:
        return {each.id: super(AsksOneByOne, self).alive([each])[each.id] for each in allocations}


class BelievesSilence(SampleAllocator):
    def alive(self, allocations: Any) -> dict[str, bool]:
        try:
            return dict(super().alive(allocations))
        except Exception:
            return {each.id: False for each in allocations}


class ForgetsTheName(SampleAllocator):
    def _submit(self, request: Any) -> Any:
        return self._call("batch-submit", *request.runner_command, start_new_session=True)


class FindsWhatIsOver(SampleAllocator):
    def find(self, names: Any) -> dict[str, list[Allocation]]:
        lines = [line.split() for line in self._call("batch-find", *names).stdout.splitlines()]
        return {name: [Allocation(id_, self.name) for its, id_, _ in lines if its == name] for name in names}


class TakesSilenceForNothing(SampleAllocator):
    def find(self, names: Any) -> dict[str, Any]:
        try:
            return dict(super().find(names))
        except AllocationError:
            return {}


class RemembersByItself(SampleAllocator):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.known: dict[str, list[Allocation]] = {}

    def allocate(self, request: Any) -> list[Allocation]:
        self.known[request.name] = super().allocate(request)
        return self.known[request.name]

    def find(self, names: Any) -> dict[str, list[Allocation]]:
        return {name: self.known.get(name, []) for name in names}


class AdvisesInGeneral(SampleAllocator):
    @classmethod
    def submission_advice(cls, workflow_id: int) -> str | None:
        return "torc submit"


class SharesItsTerminal(SampleAllocator):
    def _call(self, *command: str, start_new_session: bool = False) -> Any:
        return super()._call(*command)


@pytest.mark.parametrize(
    ("executor", "number", "clause"),
    [
        (RemembersByItself, signal.SIGKILL, "another process finds"),
        (SharesItsTerminal, signal.SIGINT, "a session of its own"),
    ],
)
def test_faults_of_allocators_that_are_cut_short(
    executor: Any, number: int, clause: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by killing and interrupting a process that submits."""
    suite = variant(AllocatorContract, executor=executor)
    monkeypatch.setattr(allocators, "OVERDUE_S", 1.0)
    batch = FakeBatchSystem(tmp_path / "batch")
    monkeypatch.setenv("PATH", f"{batch.programs(tmp_path / 'bin')}{os.pathsep}{os.environ['PATH']}")
    with breaks(clause):
        suite.test_a_submission_that_is_cut_short_is_found(tmp_path, batch, number, 0, is_accepted=True)


@pytest.mark.parametrize(
    ("executor", "test", "clause"),
    [
        (ForgetsTheName, "test_what_was_accepted_is_found_by_its_request", "find by a request's name"),
        (FindsWhatIsOver, "test_what_was_accepted_is_found_by_its_request", "queued or running"),
        (
            TakesSilenceForNothing,
            "test_a_system_that_does_not_answer_is_not_one_that_has_nothing",
            "raise AllocationError in find",
        ),
        (AdvisesInGeneral, "test_its_advice_is_a_command_for_that_workflow", "with the workflow's id"),
        (LosesSome, "test_each_accepted_allocation_is_told", "the id that the batch system gave"),
        (AsksOneByOne, "test_alive_is_queued_or_running", "ask the system once"),
        (BelievesSilence, "test_a_system_that_does_not_answer_ended_nothing", "does not answer"),
    ],
)
def test_faults_of_allocators(
    executor: Any, test: str, clause: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fake batch system reveals the fault."""
    suite = variant(AllocatorContract, executor=executor)
    batch = FakeBatchSystem(tmp_path / "batch")
    monkeypatch.setenv("PATH", f"{batch.programs(tmp_path / 'bin')}{os.pathsep}{os.environ['PATH']}")
    with breaks(clause):
        getattr(suite, test)(suite.make_allocator(tmp_path), batch)
