"""The plugin manager: finds plugins, keeps them in order, asks them one by one.

pluggy holds specifications and registrations. The asking is done here, implementation by
implementation, because pluggy lets one exception end the whole call; here it ends only the turn
of the plugin that raised.

Environment: ``TORC_DISABLE_PLUGINS=a,b`` leaves plugins out, ``TORC_TRACE_PLUGINS=1`` writes
every call and answer to standard error.
"""

import importlib
import inspect
import logging
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import pluggy
from attrs import Factory, define, evolve, frozen

from torc_framework import hookspecs
from torc_framework.errors import PluginError, UnknownNameError, suggestion
from torc_framework.executors import Executor
from torc_framework.models.action_types import ActionType
from torc_framework.models.exits import ExitClass, ExitObservation, ExitVerdict
from torc_framework.models.failures import CORE_RULE_KEYS, Failure, FailureRule, RuleAction, RuleSchema
from torc_framework.models.hpc_profiles import HpcProfile
from torc_framework.models.log_patterns import LogPattern
from torc_framework.models.recovery import FailedJob, PendingContext, PendingVerdict, RecoveryDecision
from torc_framework.plugins.project_folders import ProjectFolder, find_project_folders, import_project_plugin

_log = logging.getLogger(__name__)
_T = TypeVar("_T")
_SPECS: Final = {
    name: tuple(inspect.signature(function).parameters)
    for name, function in vars(hookspecs).items()
    if name.startswith("torc_") and callable(function)
}
"""Argument names of every hook."""


class PluginKind(StrEnum):
    """Where a plugin comes from."""

    ENTRY_POINT = "entry-point"
    BUILT_IN = "built-in"
    PROJECT = "project"


@define
class PluginInfo:
    """One plugin, for people and scripts.

    Attributes:
        name: Its name: that of the entry point, of the built-in, or of the project's file.
        kind: Where it comes from.
        distribution: Distribution that brought it; None for a project's file.
        version: Version of the distribution.
        source: Module or path that it is imported from.
        hooks: Names of the hooks that it implements.
        error: Why it cannot be used; None if it can.
        enabled: It is not switched off.
        refused: It is a project's file that is not trusted, and was not imported.
    """

    name: str
    kind: PluginKind
    source: str
    distribution: str | None = None
    version: str | None = None
    hooks: list[str] = Factory(list)
    error: str | None = None
    enabled: bool = True
    refused: bool = False


@define(eq=False)
class PluginCandidate:
    """A plugin that was found, before and after its import."""

    info: PluginInfo
    load: Callable[[], object]
    cause: BaseException | None = None

    def fail(self, message: str, cause: BaseException | None = None) -> None:
        self.info.error, self.cause = message, cause


@frozen
class _FailedAnswer:
    """A plugin that raised, or answered with something else than the hook promises."""

    error: Exception


class PluginManager:
    """Asks plugins, in the order of their names, built-ins last."""

    def __init__(
        self, candidates: Sequence[PluginCandidate], *, trace: bool = False, folders: Sequence[ProjectFolder] = ()
    ) -> None:
        self._folders = folders
        self._candidates = sorted(candidates, key=lambda candidate: candidate.info.name)
        self._trace = trace
        self._complained: set[tuple[str, str]] = set()
        self._pluggy = pluggy.PluginManager(hookspecs.PROJECT)
        self._pluggy.add_hookspecs(hookspecs)
        _mark_name_clashes(self._candidates)
        for candidate in _registration_order(self._candidates):
            self._register(candidate)
        self._chains = {name: self._chain(name) for name in _SPECS}

    @classmethod
    def load(cls, project_dir: Path | None = None, *, disabled: Iterable[str] = ()) -> "PluginManager":
        """Find and import every plugin that is not switched off; of projects' files those that are trusted.

        Args:
            project_dir: Folder of the spec; its ``torc_plugins`` and that of the present folder are looked at.
            disabled: Names to leave out, beside those of ``TORC_DISABLE_PLUGINS``.
        """
        off = {name.strip() for name in os.environ.get("TORC_DISABLE_PLUGINS", "").split(",") if name.strip()}
        off.update(disabled)
        folders = find_project_folders(project_dir)
        candidates = [*_entry_points(), *_built_ins(), *_project_files(folders)]
        for candidate in candidates:
            candidate.info.enabled = candidate.info.name not in off
        known = [candidate.info.name for candidate in candidates]
        for name in sorted(off.difference(known)):
            _log.warning("there is no plugin %r to switch off%s", name, suggestion(name, known))
        return cls(candidates, trace=os.environ.get("TORC_TRACE_PLUGINS", "") not in ("", "0"), folders=folders)

    @property
    def refused_folders(self) -> list[ProjectFolder]:
        """The projects' folders that hold a plugin which is switched on and was not imported for lack of trust."""
        wanted = {each.info.source for each in self._candidates if each.info.enabled and each.info.refused}
        return [
            folder
            for folder in self._folders
            if folder.refusal is not None and any(str(folder.path / f"{name}.py") in wanted for name in folder.plugins)
        ]

    def infos(self) -> list[PluginInfo]:
        """Return all plugins by name, also those that are switched off or cannot be used."""
        return [candidate.info for candidate in self._candidates]

    def info(self, name: str) -> PluginInfo:
        """Return one plugin.

        Raises:
            UnknownNameError: no plugin has this name.
        """
        for candidate in self._candidates:
            if candidate.info.name == name:
                return candidate.info
        raise UnknownNameError("plugin", name, [candidate.info.name for candidate in self._candidates])

    # --- registration -----------------------------------------------------------------------------

    def _register(self, candidate: PluginCandidate) -> None:
        info = candidate.info
        if info.error is not None or not info.enabled:
            return
        try:
            plugin = candidate.load()
            info.hooks = self._check(plugin)
            self._pluggy.register(plugin, info.name)
        except (Exception, SystemExit) as error:  # a plugin's import may do anything, also sys.exit()
            info.hooks = []
            candidate.fail(_describe(error), error)
            _log.warning("plugin %s (%s) cannot be used: %s", info.name, _origin(info), info.error)

    def _check(self, plugin: object) -> list[str]:
        """Return the hooks that an object implements, or raise for whatever no hook can be."""
        hooks = []
        for attribute in dir(plugin):
            options = self._pluggy.parse_hookimpl_opts(plugin, attribute)
            if options is None:
                if attribute in _SPECS and callable(getattr(plugin, attribute)):
                    raise PluginError(f"{attribute} lacks the decorator @hookimpl")
                continue
            name = options.get("specname") or attribute
            _check_signature(name, getattr(plugin, attribute))
            if options.get("wrapper") or options.get("hookwrapper"):
                raise PluginError(f"{name} is declared as a wrapper; hooks of torc have no wrappers")
            hooks.append(name)
        return sorted(hooks)

    def _chain(self, hook: str) -> "list[pluggy.HookImpl]":
        return list(reversed(getattr(self._pluggy.hook, hook).get_hookimpls()))

    # --- asking -----------------------------------------------------------------------------------

    def _ask(self, hook: str, check: Callable[[Any], _T], **arguments: Any) -> Iterator[tuple[str, _T | _FailedAnswer]]:
        """Yield each plugin's name and checked answer, in order; None answers are left out."""
        for implementation in self._chains[hook]:
            name, began = implementation.plugin_name, time.perf_counter()
            outcome: _T | _FailedAnswer
            try:
                answer = implementation.function(*[arguments[argument] for argument in implementation.argnames])
                if answer is None:
                    self._traced(hook, name, began, None)
                    continue
                outcome = check(answer)
            except (Exception, SystemExit) as error:
                outcome = _FailedAnswer(
                    error if isinstance(error, Exception) else PluginError(f"it called exit ({error})")
                )
                self._complain(hook, name, error)
            self._traced(hook, name, began, outcome)
            yield name, outcome

    def _first(self, hook: str, check: Callable[[Any], _T], **arguments: Any) -> _T | None:
        """Return the first answer; plugins that raise pass."""
        for _, outcome in self._ask(hook, check, **arguments):
            if not isinstance(outcome, _FailedAnswer):
                return outcome
        return None

    def _all(self, hook: str, check: Callable[[Any], _T], **arguments: Any) -> list[tuple[str, _T]]:
        """Return every answer with its plugin; plugins that raise pass."""
        answers = self._ask(hook, check, **arguments)
        return [(name, outcome) for name, outcome in answers if not isinstance(outcome, _FailedAnswer)]

    def _complain(self, hook: str, plugin: str, error: BaseException) -> None:
        """Log a plugin's error: loudly the first time, with its traceback for those who debug."""
        level = logging.DEBUG if (plugin, hook) in self._complained else logging.WARNING
        self._complained.add((plugin, hook))
        _log.log(level, "plugin %s raised in %s: %s", plugin, hook, _describe(error))
        _log.debug("traceback of plugin %s in %s", plugin, hook, exc_info=error)

    def _traced(self, hook: str, plugin: str, began: float, outcome: object) -> None:
        if self._trace:
            shown = f"raised {_describe(outcome.error)}" if isinstance(outcome, _FailedAnswer) else repr(outcome)
            print(f"torc: {hook} {plugin} {1e3 * (time.perf_counter() - began):.2f} ms: {shown}", file=sys.stderr)

    # --- the hooks --------------------------------------------------------------------------------

    def executors(self) -> dict[str, type[Executor]]:
        """Return the usable executors by name; those that two plugins offer are left out."""
        return {name: offers[0][1] for name, offers in self._executor_offers()[0].items() if len(offers) == 1}

    def executor(self, name: str) -> type[Executor]:
        """Return the executor of that name.

        Raises:
            UnknownNameError: no plugin offers it, and every plugin could be asked.
            PluginError: two plugins offer it, or none, but some plugin could not be asked.
        """
        offers, troubles = self._executor_offers()
        found = offers.get(name, [])
        if len(found) > 1:
            raise PluginError(_clash("executor", name, [plugin for plugin, _ in found]))
        if found:
            return found[0][1]
        if troubles:
            broken = "; ".join(f"plugin {plugin}: {_describe(error)}" for plugin, error in troubles)
            raise PluginError(f"no executor {name!r}, and not every plugin could be asked: {broken}") from troubles[0][
                1
            ]
        raise UnknownNameError("executor", name, offers)

    def executors_of(self, plugin: str) -> list[type[Executor]]:
        """Return the executors that one plugin offers."""
        offers, _ = self._executor_offers()
        return [executor for found in offers.values() for owner, executor in found if owner == plugin]

    def _executor_offers(
        self,
    ) -> tuple[dict[str, list[tuple[str, type[Executor]]]], list[tuple[str, BaseException]]]:
        """Return who offers which executor, and who could not be asked and why."""
        offers: dict[str, list[tuple[str, type[Executor]]]] = {}
        troubles: list[tuple[str, BaseException]] = []
        for candidate in self._candidates:
            if candidate.info.error is not None:
                troubles.append((candidate.info.name, candidate.cause or PluginError(candidate.info.error)))
        for plugin, outcome in self._ask("torc_executors", _executor_classes):
            if isinstance(outcome, _FailedAnswer):
                troubles.append((plugin, outcome.error))
                continue
            for executor in outcome:
                offers.setdefault(executor.name, []).append((plugin, executor))
        return offers, troubles

    def rule_keys(self) -> RuleSchema:
        """Return the JSON-schema fragments of all rule keys.

        Raises:
            PluginError: a plugin raised, owns a key of the core, or owns the key of another.
        """
        schema: dict[str, Mapping[str, Any]] = {}
        owners: dict[str, str] = {}
        for plugin, outcome in self._ask("torc_failure_rule_keys", _a_mapping):
            if isinstance(outcome, _FailedAnswer):
                raise PluginError(f"plugin {plugin} could not name its failure rule keys") from outcome.error
            for key, fragment in outcome.items():
                if key in CORE_RULE_KEYS:
                    raise PluginError(f"plugin {plugin} claims the failure rule key {key!r}, which is the core's own")
                if key in owners:
                    raise PluginError(_clash("failure rule key", key, [owners[key], plugin]))
                owners[key], schema[key] = plugin, fragment
        return schema

    def action_types(self) -> dict[str, ActionType]:
        """Return the action types by name.

        Raises:
            PluginError: two plugins offer a type of one name.
        """
        types: dict[str, ActionType] = {}
        owners: dict[str, str] = {}
        for plugin, offered in self._all("torc_action_types", _all_of(ActionType)):
            for action_type in offered:
                if action_type.name in owners:
                    raise PluginError(_clash("action type", action_type.name, [owners[action_type.name], plugin]))
                owners[action_type.name], types[action_type.name] = plugin, action_type
        return types

    def hpc_profiles(self) -> dict[str, HpcProfile]:
        """Return the HPC profiles by name; the first of a name wins."""
        profiles: dict[str, HpcProfile] = {}
        for _, offered in self._all("torc_hpc_profiles", _all_of(HpcProfile)):
            for profile in offered:
                profiles.setdefault(profile.name, profile)
        return profiles

    def classify(self, observation: ExitObservation) -> ExitVerdict:
        """Return what an ending is called; unknown if no plugin has an opinion."""
        verdict = self._first("torc_classify_exit", _checked(ExitVerdict), observation=observation)
        return verdict or ExitVerdict(ExitClass.UNKNOWN, "no classifier had an opinion", confidence=0.0)

    def match_failure(self, rule: FailureRule, failure: Failure) -> RuleAction | None:
        """Return what a rule that covers a failure wants; None if it does not, or no plugin has an opinion."""
        answer = self._first("torc_match_failure", _a_match, rule=rule, failure=failure)
        return RuleAction.RETRY if answer is True else answer or None

    def decide_recovery(self, job: FailedJob) -> RecoveryDecision | None:
        """Return the first policy's decision on a failed job, with its name; None if no policy has an opinion."""
        for plugin, answer in self._ask("torc_decide_recovery", _checked(RecoveryDecision), job=job):
            if not isinstance(answer, _FailedAnswer):
                return evolve(answer, decided_by=plugin)
        return None

    def recovery_options(self) -> dict[str, type[Any]]:
        """Return the classes of recovery policies' options by plugin, in the order of the plugins."""
        return dict(self._all("torc_recovery_options", _checked(type)))

    def classify_pending(self, failures: Sequence[Failure], context: PendingContext) -> dict[int, PendingVerdict]:
        """Return verdicts on jobs that wait for one, by job id; the first plugin's counts."""
        verdicts: dict[int, PendingVerdict] = {}
        check = _values_of(PendingVerdict)
        for plugin, answer in self._all("torc_classify_pending", check, failures=failures, context=context):
            for job_id, verdict in answer.items():
                verdicts.setdefault(job_id, verdict if verdict.judge else evolve(verdict, judge=plugin))
        return verdicts

    def log_patterns(self) -> list[LogPattern]:
        """Return all log patterns, in the order of the plugins."""
        return [pattern for _, offered in self._all("torc_log_patterns", _all_of(LogPattern)) for pattern in offered]

    def emit(self, event: Mapping[str, Any]) -> None:
        """Tell every plugin of an event."""
        for _ in self._ask("torc_on_event", lambda answer: answer, event=event):
            pass


# --- where plugins come from ----------------------------------------------------------------------


def _entry_points() -> Iterator[PluginCandidate]:
    """Yield the plugins of installed distributions, each once, none imported yet."""
    import importlib_metadata

    seen = set()
    for entry in importlib_metadata.entry_points(group=hookspecs.PROJECT):
        distribution = entry.dist.name if entry.dist else None
        if (entry.name, entry.value, distribution) in seen:
            continue  # one distribution can be found twice, through two entries of sys.path
        seen.add((entry.name, entry.value, distribution))
        version = entry.dist.version if entry.dist else None
        yield PluginCandidate(
            PluginInfo(entry.name, PluginKind.ENTRY_POINT, entry.value, distribution, version), entry.load
        )


def _built_ins() -> Iterator[PluginCandidate]:
    from torc_framework import __version__
    from torc_framework.builtin import PLUGINS

    for name, module in PLUGINS:
        info = PluginInfo(name, PluginKind.BUILT_IN, module, "torc-framework", __version__)
        yield PluginCandidate(info, partial(importlib.import_module, module))


def _project_files(folders: Sequence[ProjectFolder]) -> Iterator[PluginCandidate]:
    """Yield the plugin files of projects; those that may not be imported with the reason."""
    for folder in folders:
        for name in folder.plugins:
            info = PluginInfo(name, PluginKind.PROJECT, str(folder.path / f"{name}.py"))
            if folder.refusal is not None:
                info.error, info.refused = f"not imported: {folder.refusal}", True
            yield PluginCandidate(info, partial(import_project_plugin, folder, name))


def _registration_order(candidates: Sequence[PluginCandidate]) -> list[PluginCandidate]:
    """Return candidates so that pluggy, which asks the last registered first, asks by name.

    Built-ins are marked ``trylast``; among those the one registered last is asked last.
    """
    built_ins = [candidate for candidate in candidates if candidate.info.kind is PluginKind.BUILT_IN]
    others = [candidate for candidate in candidates if candidate.info.kind is not PluginKind.BUILT_IN]
    return [*reversed(others), *built_ins]


def _mark_name_clashes(candidates: Sequence[PluginCandidate]) -> None:
    """Set aside all plugins that share a name: none of them can be chosen over the other."""
    by_name: dict[str, list[PluginCandidate]] = {}
    for candidate in candidates:
        if candidate.info.refused:  # a stranger's file cannot switch off a plugin by its name
            continue
        by_name.setdefault(candidate.info.name, []).append(candidate)
    for name, same in by_name.items():
        if len(same) > 1:
            message = _clash("plugin", name, [_origin(candidate.info) for candidate in same])
            _log.warning("%s", message)
            for candidate in same:
                candidate.fail(message)


# --- checks and words -----------------------------------------------------------------------------


def _check_signature(hook: str, function: Callable[..., Any]) -> None:
    if hook not in _SPECS:
        raise PluginError(f"unknown hook {hook!r}{suggestion(hook, sorted(_SPECS))}")
    known = _SPECS[hook]
    for parameter in inspect.signature(function).parameters:
        if parameter not in known:
            allowed = ", ".join(known) or "none"
            raise PluginError(f"{hook} has no argument {parameter!r}; its arguments: {allowed}")


def _checked(kind: type[_T]) -> Callable[[Any], _T]:
    def check(answer: Any) -> _T:
        if not isinstance(answer, kind):
            raise PluginError(f"answered {answer!r}; expected {kind.__name__}")
        return answer

    return check


def _a_match(answer: Any) -> bool | RuleAction:
    return answer if isinstance(answer, RuleAction) else _checked(bool)(answer)


def _all_of(kind: type[_T]) -> Callable[[Any], list[_T]]:
    check = _checked(kind)
    return lambda answer: [check(item) for item in answer]


def _a_mapping(answer: Any) -> Mapping[Any, Any]:
    if not isinstance(answer, Mapping):
        raise PluginError(f"answered {answer!r}; expected a mapping")
    return answer


def _values_of(kind: type[_T]) -> Callable[[Any], Mapping[Any, _T]]:
    check = _checked(kind)
    return lambda answer: {key: check(value) for key, value in _a_mapping(answer).items()}


def _executor_classes(answer: Any) -> list[type[Executor]]:
    for item in answer:
        if not (isinstance(item, type) and issubclass(item, Executor)):
            raise PluginError(f"answered {item!r}; expected subclasses of Launcher or Allocator")
        if not isinstance(getattr(item, "name", None), str):
            raise PluginError(f"executor class {item.__qualname__} has no name")
    return list(answer)


def _clash(kind: str, name: str, owners: Sequence[str]) -> str:
    return f"{kind} {name!r} comes from {' and from '.join(owners)}; uninstall or switch off all but one"


def _origin(info: PluginInfo) -> str:
    if info.distribution is None:
        return info.source
    return f"{info.distribution} {info.version}" if info.version else info.distribution


def _describe(error: BaseException) -> str:
    """Return an error in one line: its class, unless the text alone is ours, and its text."""
    text = " ".join(str(error).split())
    return text if isinstance(error, PluginError) else f"{type(error).__name__}: {text}".rstrip(": ")
