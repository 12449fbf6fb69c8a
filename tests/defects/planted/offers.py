"""Failure matchers, HPC profiles and action types that break a promise; the suite of each names it."""

import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

from torc_framework.api import ActionType, HpcProfile, Partition, RuleAction
from torc_framework.testing import ActionTypeContract, HpcProfileContract, MatcherContract


def matching(match: Any, keys: Any = None) -> Any:
    """Return a matcher with the key ``mine``, unless it has others."""
    owned = {"mine": {"type": "integer"}} if keys is None else keys
    return SimpleNamespace(torc_match_failure=match, torc_failure_rule_keys=lambda: owned)


class Matcher(MatcherContract):
    rules = ({"mine": 77},)
    wrong_rules = ({"mine": "x"},)


def is_mine(rule: Any, failure: Any) -> bool | None:
    return failure.return_code == rule["mine"] if "mine" in rule else None


class TestMatchesRulesOfOthers(Matcher):
    promise = "answer None for a rule without a key of yours"
    plugin = matching(lambda rule, failure: failure.return_code == 77)


class TestMatchesEverything(Matcher):
    promise = "the rules leave out some failure"
    plugin = matching(lambda rule, failure: True if "mine" in rule else None)


class TestMatchesNothing(Matcher):
    promise = "the rules cover some failure"
    plugin = matching(lambda rule, failure: False if "mine" in rule else None)


class TestHasNoOpinion(Matcher):
    promise = "answer True, False or a RuleAction"
    plugin = matching(lambda rule, failure: True if rule.get("mine") == failure.return_code else None)


class TestAnswersWithAWord(Matcher):
    promise = "answer True, False or a RuleAction"
    plugin = matching(lambda rule, failure: "retry" if "mine" in rule else None)


class TestRaisesWithoutItsKey(Matcher):
    promise = "never raise on a rule without your keys"
    plugin = matching(lambda rule, failure: rule["mine"] == failure.return_code)


class TestRaisesWithoutStderr(Matcher):
    promise = "never raise on a rule that passes your schema"
    plugin = matching(
        lambda rule, failure: "x" in open(failure.stderr_path).read() if "mine" in rule else None  # noqa: SIM115 - a defect
    )


class TestReadsTheFirstKey(Matcher):
    promise = "the order of a rule's keys"

    @staticmethod
    def match(rule: Mapping[str, Any], failure: Any) -> bool | None:
        return rule["mine"] == failure.return_code and next(iter(rule)) == "mine" if "mine" in rule else None

    plugin = matching(match)


class TestMatchesByTurns(Matcher):
    promise = "no memory"

    class plugin:
        calls = 0

        @staticmethod
        def torc_failure_rule_keys() -> Any:
            return {"mine": {"type": "integer"}}

        @classmethod
        def torc_match_failure(cls, rule: Any, failure: Any) -> bool | None:
            cls.calls += 1
            return cls.calls % 2 == 0 if "mine" in rule else None


class TestMatchesByTheClock(Matcher):
    promise = "no clock"
    plugin = matching(lambda rule, failure: is_mine(rule, failure) if time.time() > 0 else None)


class TestChangesTheRule(Matcher):
    promise = "leave the arguments as they are"

    @staticmethod
    def match(rule: Any, failure: Any) -> bool | None:
        wanted = rule.pop("mine", None)
        rule["seen"] = wanted
        return None if wanted is None else bool(failure.return_code == wanted)

    plugin = SimpleNamespace(
        torc_match_failure=lambda rule, failure: TestChangesTheRule.match(rule, failure) if "mine" in rule else None,
        torc_failure_rule_keys=lambda: {"mine": {"type": "integer"}},
    )


class TestMatcherSleeps(Matcher):
    promise = "answer soon"

    @staticmethod
    def match(rule: Any, failure: Any) -> bool | None:
        time.sleep(1000)
        return None

    plugin = matching(match)


class TestOwnsACoreKey(Matcher):
    promise = "belong to the core"
    plugin = matching(is_mine, {"mine": {"type": "integer"}, "delay_seconds": {"type": "number"}})


class TestOwnsABuiltInKey(Matcher):
    promise = "of other names than those of the built-in matcher"
    plugin = matching(is_mine, {"mine": {"type": "integer"}, "exit_codes": {"type": "array"}})


class TestSchemaIsWrong(Matcher):
    promise = "is valid JSON schema"
    plugin = matching(is_mine, {"mine": {"type": "whole"}})


class TestSchemaRefusesItsRule(Matcher):
    promise = "a valid rule passes its schema"
    plugin = matching(is_mine, {"mine": {"type": "string"}})


class TestSchemaTakesEverything(Matcher):
    promise = "a wrong rule is refused"
    plugin = matching(is_mine, {"mine": {}})


class TestKeyIsNotTried(Matcher):
    promise = "use every key"
    plugin = matching(is_mine, {"mine": {"type": "integer"}, "more": {}})


# --- profiles ---------------------------------------------------------------------------------------


def profile(*partitions: Partition, **changes: Any) -> Any:
    values: dict[str, Any] = {"name": "site", "detect_env_var": "CLUSTER=site"} | changes
    found = HpcProfile(partitions=partitions, **values)
    return SimpleNamespace(torc_hpc_profiles=lambda: [found])


def partition(memory_mb: Any = 245_760, walltime_s: Any = 172_800, **changes: Any) -> Partition:
    return Partition(
        **({"name": "std", "cpus_per_node": 64, "memory_mb": memory_mb, "max_walltime_secs": walltime_s} | changes)
    )


class TestMemoryInBytes(HpcProfileContract):
    promise = "memory_mb of site/std is in MiB"
    plugin = profile(partition(240 * 2**30))


class TestMemoryInKib(HpcProfileContract):
    promise = "memory_mb of site/std is in MiB"
    plugin = profile(partition(240 * 2**20))


class TestMemoryInGib(HpcProfileContract):
    promise = "memory_mb of site/std is in MiB"
    plugin = profile(partition(240))


class TestLargeMemoryInGib(HpcProfileContract):
    promise = "memory_mb of site/std is in MiB"
    plugin = profile(partition(2048))


class TestMinutes(HpcProfileContract):
    promise = "max_walltime_secs of site/std is in seconds"
    plugin = profile(partition(walltime_s=2880))


class TestFourHoursInMinutes(HpcProfileContract):
    promise = "max_walltime_secs of site/std is in seconds"
    plugin = profile(partition(walltime_s=240))


class TestWeekInMinutes(HpcProfileContract):
    promise = "max_walltime_secs of site/std is in seconds"
    plugin = profile(partition(walltime_s=10_080))


class TestHours(HpcProfileContract):
    promise = "max_walltime_secs of site/std is in seconds"
    plugin = profile(partition(walltime_s=48))


class TestMilliseconds(HpcProfileContract):
    promise = "max_walltime_secs of site/std is in seconds"
    plugin = profile(partition(walltime_s=14_400_000))


class TestGpuMemoryInMib(HpcProfileContract):
    promise = "gpu_memory_gb of site/std is in GiB"
    plugin = profile(partition(gpus_per_node=4, gpu_type="a100", gpu_memory_gb=81_920))


class TestGpusWithoutGpus(HpcProfileContract):
    promise = "no GPU type without GPUs"
    plugin = profile(partition(gpu_type="a100"))


class TestBrokenMemory(HpcProfileContract):
    promise = "torc_hpc_profiles never raises"
    plugin = SimpleNamespace(torc_hpc_profiles=lambda: [partition(240.5 * 1024)])


class TestWalltimeIsAText(HpcProfileContract):
    promise = "torc_hpc_profiles never raises"
    plugin = SimpleNamespace(torc_hpc_profiles=lambda: [partition(walltime_s="2-00:00:00")])


class TestNoCpus(HpcProfileContract):
    promise = "above 0"
    plugin = profile(partition(cpus_per_node=0))


class TestCpusOfTheCluster(HpcProfileContract):
    promise = "are those of one node"
    plugin = profile(partition(40_000_000, cpus_per_node=100_000))


class TestSamePartitions(HpcProfileContract):
    promise = "names of partitions"
    plugin = profile(partition(), partition())


class TestTwoWords(HpcProfileContract):
    promise = "a partition's name is one word"
    plugin = profile(partition(name="std long"))


class TestNoNumberOfNodes(HpcProfileContract):
    promise = "some number of nodes"
    plugin = profile(partition(min_nodes=3, max_nodes=2))


class TestAllByName(HpcProfileContract):
    promise = "need not be named"
    plugin = profile(partition(requires_explicit_request=True))


class TestNobodyKnows(HpcProfileContract):
    promise = "how it is recognised"
    plugin = profile(partition(), detect_env_var=None)


class TestFitsEveryMachine(HpcProfileContract):
    promise = "does not fit every machine"
    plugin = profile(partition(), detect_hostname=".+")


class TestNoExpression(HpcProfileContract):
    promise = "is a regular expression"
    plugin = profile(partition(), detect_hostname="(")


class TestVariableWithoutValue(HpcProfileContract):
    promise = "NAME=value"
    plugin = profile(partition(), detect_env_var="CLUSTER")


class TestNameOfTwoWords(HpcProfileContract):
    promise = "one word that can be typed"
    plugin = profile(partition(), name="my site")


class TestNegativeCharge(HpcProfileContract):
    promise = "are not negative"
    plugin = profile(partition(), charge_factor_cpu=-1.0)


class TestTwoOfOneName(HpcProfileContract):
    promise = "names of profiles differ"
    plugin = SimpleNamespace(torc_hpc_profiles=lambda: [HpcProfile("a", detect_env_var=f"A={n}") for n in (1, 2)])


class TestRecognisedAlike(HpcProfileContract):
    promise = "of each profile differs"
    plugin = SimpleNamespace(torc_hpc_profiles=lambda: [HpcProfile(name, detect_env_var="A=1") for name in "ab"])


class TestProfilesRaise(HpcProfileContract):
    promise = "torc_hpc_profiles never raises"
    plugin = SimpleNamespace(torc_hpc_profiles=lambda: 1 / 0)


class TestProfilesBlock(HpcProfileContract):
    promise = "answer soon"
    plugin = SimpleNamespace(torc_hpc_profiles=lambda: time.sleep(1000))


# --- action types -----------------------------------------------------------------------------------

ANY = {
    "type": "object",
    "properties": {"word": {"type": "string"}},
    "required": ["word"],
    "additionalProperties": False,
}


def nothing(config: Any, context: Any) -> None:
    pass


def action(execute: Any = nothing, schema: Any = ANY, **changes: Any) -> ActionType:
    return ActionType("site", schema, execute, **changes)


class Action(ActionTypeContract):
    configs = ({"word": "a"},)
    wrong_configs = ({"word": 1}, {})
    harmless_configs: ClassVar[Sequence[Any]] = ({"word": "a"},)
    patience_s = 2.0


class TestTakesAnything(Action):
    promise = "refuses wrong and unknown keys"
    action_type = action(schema={"type": "object"})


class TestNoSchema(Action):
    promise = "is valid JSON schema"
    action_type = action(schema={"type": "thing"})


class TestNameIsASentence(Action):
    promise = "name of one word"
    action_type = ActionType("do it", ANY, nothing)


class TestWhyNotRaises(Action):
    promise = "why_not never raises"
    action_type = action(why_not=lambda config, context: 1 / 0)


class TestWhyNotIsFalse(Action):
    promise = "why_not answers with a sentence, or None"
    action_type = action(why_not=lambda config, context: True)


class TestWhyNotActs(Action):
    promise = "why_not changes nothing"
    action_type = action(why_not=lambda config, context: Path(context.output_dir, "x").mkdir())


class TestWhyNotBlocks(Action):
    promise = "why_not answers soon"
    action_type = action(why_not=lambda config, context: time.sleep(1000))


class TestExecuteRaises(Action):
    promise = "execute returns when the action was carried out"
    action_type = action(lambda config, context: 1 / 0)


class TestExecuteAnswers(Action):
    promise = "execute answers nothing"
    action_type = action(lambda config, context: 0)


class TestExecuteExits(Action):
    promise = "execute returns when the action was carried out"
    action_type = action(lambda config, context: sys.exit(0))


class TestRunsTwice(Action):
    promise = "carries the action out once"

    @staticmethod
    def execute(config: Any, context: Any) -> None:
        for _ in range(2):
            subprocess.run(["true", config["word"]], check=True)

    action_type = action(execute)


class TestAppendsTwice(Action):
    promise = "carries the action out once"

    @staticmethod
    def execute(config: Any, context: Any) -> None:
        for _ in range(2):
            with open(f"{context.output_dir}/list", "a") as file:
                file.write(config["word"])

    action_type = action(execute)


class TestChangesTheConfig(Action):
    promise = "execute leaves the configuration as it is"
    action_type = action(lambda config, context: config.update(word="b"))


class TestHidesFailures(Action):
    promise = "execute raises when the action could not be carried out"
    failing_configs = ({"word": "a"},)
    action_type = action(lambda config, context: config["word"] and None)


class TestFailsInSilence(Action):
    promise = "says what went wrong"
    harmless_configs = ()
    failing_configs = ({"word": "a"},)

    @staticmethod
    def execute(config: Any, context: Any) -> None:
        raise RuntimeError

    action_type = action(execute)


class TestGoesOn(Action):
    promise = "ends when is_stopping says so"
    harmless_configs = ()
    endless_configs = ({"word": "a"},)
    action_type = action(lambda config, context: time.sleep(30))


class TestLeavesAProcess(Action):
    promise = "leaves no process behind"
    harmless_configs = ()
    endless_configs = ({"word": "a"},)

    @staticmethod
    def execute(config: Any, context: Any) -> None:
        subprocess.Popen(["sleep", "20"], start_new_session=True)
        while not context.is_stopping():
            time.sleep(0.05)

    action_type = action(execute)


class TestNeverReturns(Action):
    promise = "execute returns when the action was carried out"
    action_type = action(lambda config, context: time.sleep(1000))


class TestActionOfARule(Matcher):
    promise = "answer True, False or a RuleAction"
    plugin = matching(lambda rule, failure: RuleAction.RETRY.name if "mine" in rule else None)
