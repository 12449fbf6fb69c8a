"""Entry point for cases: `answer_case` and the table of its functions by executor and kind.

A case is a JSON object with ``executor`` (the system), ``kind`` (the question), ``observation`` (the facts) and
``policy`` (settings). Its answer is an object; ``outcome`` is a class of `ExitClass`, ``exit`` the code as that system
prints it, ``action`` the next action.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from torc_framework.exit_cases import (
    batch_systems,
    diagnosis,
    failure_handlers,
    kubernetes,
    log_patterns,
    osmo,
    osmo_groups,
    slurm,
    spur,
    spur_requeues,
    torc,
)
from torc_framework.exit_cases.case_values import CaseError, CaseValues
from torc_framework.exits import osmo_exit_actions
from torc_framework.models.resources import parse_duration
from torc_framework.models.time_limits import parse_time_limit

CaseAnswer = dict[str, Any]
CaseFunction = Callable[[CaseValues, CaseValues], CaseAnswer]
"""Returns the answer for an observation and a policy."""


def _seen_only(function: Callable[[CaseValues], CaseAnswer]) -> CaseFunction:
    return lambda seen, _policy: function(seen)


def _torc(executor: str) -> CaseFunction:
    return lambda seen, policy: torc.answer(seen, policy, executor)


def _slurm_ending(seen: CaseValues, _policy: CaseValues) -> CaseAnswer:
    return spur.classify_completion(seen) if seen.has("nodes", "steps") else slurm.classify_accounting(seen)


def _spur_ending(seen: CaseValues, _policy: CaseValues) -> CaseAnswer:
    return slurm.classify_accounting(seen) if seen.has("scheduler_state") else spur.classify_completion(seen)


def _validity(problems: list[str]) -> CaseAnswer:
    return {"valid": not problems} | ({"problems": problems} if problems else {})


def _check_osmo(seen: CaseValues, _policy: CaseValues) -> CaseAnswer:
    if seen.has("tasks"):
        problem = osmo_groups.check_group(seen)
        return _validity([problem] if problem else [])
    actions = seen.get("exit_actions", "exitActions")
    problems = osmo_exit_actions.exit_action_problems({} if actions is None else actions)
    answer = _validity(problems)
    if not problems and (warnings := osmo_exit_actions.overlaps(actions or {})):
        answer["warnings"] = warnings
    return answer


def _check_rules(seen: CaseValues, _policy: CaseValues) -> CaseAnswer:
    rules = seen.get("rules")
    if rules is None:
        rules = [seen.get("rule")] if seen.has("rule") else [dict(seen.values)]
    if not isinstance(rules, list):
        return _validity([f"rules are {rules!r}; expected a list"])
    return _validity([problem for rule in rules for problem in failure_handlers.rule_problems(rule)])


def _check_report(seen: CaseValues, _policy: CaseValues) -> CaseAnswer:
    problem = spur_requeues.check_report(seen)
    return _validity([problem] if problem else [])


def _time_limit(dialect: str, seen: CaseValues, _policy: CaseValues) -> CaseAnswer:
    unit = (seen.text("unit") or "minutes").lower()
    text = seen.get("text", "time_limit", "time")
    try:
        limit = parse_time_limit(str(text), unit, dialect)
    except ValueError as error:
        return {"value": "error", "message": str(error)}
    return {"value": "unlimited" if limit is None else limit}


def _duration(seen: CaseValues, _policy: CaseValues) -> CaseAnswer:
    try:
        seconds = parse_duration(str(seen.get("text", "runtime", "duration")))
    except ValueError as error:
        return {"value": "error", "message": str(error)}
    return {"value": seconds if (seen.text("unit") or "").lower() == "seconds" else -(-seconds // 60)}


def _log_line(seen: CaseValues, _policy: CaseValues) -> CaseAnswer:
    found = log_patterns.match_line(seen.text("line") or "", seen.text("tool") or "logs analyze")
    name, severity = found or (None, None)
    return {"pattern": name, "severity": severity}


_TORC_KINDS: Final[Mapping[str, CaseFunction]] = {
    "classify": _torc("torc"),
    "match": failure_handlers.decide,
    "validate": _check_rules,
    "diagnose": _seen_only(diagnosis.diagnose),
    "recover": diagnosis.recover,
    "log_pattern": _log_line,
    "parse_time": _duration,
}
_LOCAL: Final = {**_TORC_KINDS, "classify": _torc("local")}
_SLURM: Final[Mapping[str, CaseFunction]] = {
    "classify": _slurm_ending,
    "match": spur_requeues.decide_requeue,
    "validate": _check_report,
    "parse_time": partial(_time_limit, "slurm"),
    "log_pattern": _log_line,
}
_PBS: Final[Mapping[str, CaseFunction]] = {"classify": batch_systems.classify_pbs}
_TORQUE: Final[Mapping[str, CaseFunction]] = {"classify": batch_systems.classify_torque}
_AWS: Final[Mapping[str, CaseFunction]] = {
    "classify": _seen_only(batch_systems.classify_aws),
    "match": batch_systems.decide_aws,
}
_SGE: Final[Mapping[str, CaseFunction]] = {
    "classify": _seen_only(batch_systems.classify_plain),
    "match": batch_systems.decide_sge,
}
_K8S: Final[Mapping[str, CaseFunction]] = {
    "classify": _seen_only(kubernetes.classify),
    "match": kubernetes.decide_retry,
}

EXECUTORS: Final[Mapping[str, Mapping[str, CaseFunction]]] = {
    "torc": _TORC_KINDS,
    "torc-local": _LOCAL,
    "torc-slurm": {**_TORC_KINDS, "classify": _torc("slurm"), "parse_time": partial(_time_limit, "slurm")},
    "local": _LOCAL,
    "slurm": _SLURM,
    "spur": {**_SLURM, "classify": _spur_ending, "parse_time": partial(_time_limit, "spur")},
    "osmo": {
        "classify": _seen_only(osmo.classify),
        "match": osmo.decide_action,
        "group": osmo_groups.answer,
        "validate": _check_osmo,
    },
    "k8s": _K8S,
    "lsf": {"classify": _seen_only(batch_systems.classify_lsf)},
    "pbs": _PBS,
    "torque": _TORQUE,
    "htcondor": {"classify": _seen_only(batch_systems.classify_condor)},
    "aws-batch": _AWS,
    "sge": _SGE,
    "nextflow": {"classify": _seen_only(batch_systems.classify_plain), "match": batch_systems.decide_nextflow},
}
"""Functions that answer, by executor and kind."""
OTHER_NAMES: Final[Mapping[str, str]] = {
    "shell": "local",
    "posix": "local",
    "sysexits": "local",
    "torc-ssh": "torc-local",
    "kubernetes": "k8s",
    "condor": "htcondor",
    "aws": "aws-batch",
    "awsbatch": "aws-batch",
    "batch": "aws-batch",
    "grid-engine": "sge",
    "gridengine": "sge",
    "nf-core": "nextflow",
}
"""Further names of executors."""


def answer_case(case: Any) -> CaseAnswer:
    """Return the answer to a case, with the ``id`` of the case; for an invalid case it has the key ``error``."""
    if not isinstance(case, dict):
        return {"id": None, "error": f"a case is {_short(case)}; expected an object with executor, kind, observation"}
    head = {"id": case.get("id")}
    try:
        return head | _answer(CaseValues("case", case))
    except (CaseError, ValueError, OverflowError) as error:
        return head | {"error": str(error)}


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _answer(case: CaseValues) -> CaseAnswer:
    executor = case.text("executor")
    name = (executor or "").strip().lower().replace("_", "-")
    kinds = EXECUTORS.get(OTHER_NAMES.get(name, name))
    if kinds is None:
        raise CaseError(f"executor is {executor!r}; known: {', '.join(EXECUTORS)}")
    kind = (case.text("kind") or "classify").strip().lower().replace("-", "_")
    function = kinds.get(kind)
    if function is None:
        raise CaseError(f"kind is {kind!r}; known of {executor}: {', '.join(kinds)}")
    seen, policy = case.object("observation"), case.object("policy")
    return function(CaseValues("observation", seen.values), CaseValues("policy", policy.values))
