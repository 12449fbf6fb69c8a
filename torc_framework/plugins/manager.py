"""The plugin manager: registers plugins in a fixed order and calls their hooks.

Environment: ``TORC_DISABLE_PLUGINS=a,b`` leaves plugins out, ``TORC_TRACE_PLUGINS=1`` writes every call with its answer
to standard error.
"""

import logging
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import pluggy
from attrs import evolve

from torc_framework import hookspecs
from torc_framework.distributions import distribution_of, how_to_get
from torc_framework.errors import PluginError, UnknownNameError, suggestion
from torc_framework.executors import Allocator, Executor
from torc_framework.executors.lazy_executors import LazyExecutors
from torc_framework.models.action_types import ActionType
from torc_framework.models.exits import ExitClass, ExitObservation, ExitVerdict
from torc_framework.models.failures import CORE_RULE_KEYS, Failure, FailureRule, RuleAction, RuleSchema
from torc_framework.models.hpc_profiles import HpcProfile
from torc_framework.models.log_patterns import LogPattern
from torc_framework.models.recovery import FailedJob, PendingContext, PendingVerdict, RecoveryDecision
from torc_framework.plugins.answer_checks import (
    describe_error,
    executor_classes,
    instance_of,
    list_of,
    mapping,
    mapping_of,
    options_class,
    rule_match,
)
from torc_framework.plugins.deferred_plugin import deferred_plugin, hook_facts
from torc_framework.plugins.discovery import (
    PluginCandidate,
    PluginInfo,
    PluginKind,
    built_in_plugins,
    clash_message,
    disabled_by_environment,
    entry_point_plugins,
    mark_name_clashes,
    origin_of,
    project_plugins,
    registration_order,
)
from torc_framework.plugins.hook_calls import FailedAnswer, HookCalls
from torc_framework.plugins.hook_checks import implemented_hooks
from torc_framework.plugins.known_plugins import KnownPlugins, PluginFacts
from torc_framework.plugins.project_folders import ProjectFolder, find_project_folders

_log = logging.getLogger(__name__)
_T = TypeVar("_T")
_OFFERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "torc_executors": executor_classes,
    "torc_hpc_profiles": list_of(HpcProfile),
    "torc_failure_rule_keys": mapping,
    "torc_action_types": list_of(ActionType),
    "torc_recovery_options": options_class,
    "torc_log_patterns": list_of(LogPattern),
}
"""The hooks that only offer something, with the check of their answer."""


class PluginManager:
    """Calls the hooks of all plugins, in the order of the plugins' names, the built-in ones last.

    Args:
        candidates: The plugins.
        trace: Write every call with its answer to standard error.
        folders: The project folders.
        known: What is known of installed plugins, which are imported when one of their hooks is called; without it, and
            without anything known of them, plugins are imported at once.
    """

    def __init__(
        self,
        candidates: Sequence[PluginCandidate],
        *,
        trace: bool = False,
        folders: Sequence[ProjectFolder] = (),
        known: KnownPlugins | None = None,
    ) -> None:
        self._folders = folders
        self._candidates = sorted(candidates, key=lambda candidate: candidate.info.name)
        self._calls = HookCalls(trace=trace)
        self._known = known
        self._deferred: dict[str, PluginFacts] = {}
        self._undeferred: set[str] = set()
        mark_name_clashes(self._candidates)
        self._register_all()

    @classmethod
    def load(cls, project_dir: Path | None = None, *, disabled: Iterable[str] = ()) -> "PluginManager":
        """Return a manager of all plugins that are not disabled; project files are imported only if they are trusted.

        Args:
            project_dir: Folder of the spec; plugins are searched in its ``torc_plugins`` and in that of the current
                folder.
            disabled: Names of plugins to leave out, besides those in ``TORC_DISABLE_PLUGINS``.
        """
        off = {*disabled_by_environment(), *disabled}
        folders = find_project_folders(project_dir)
        candidates = [*entry_point_plugins(), *built_in_plugins(), *project_plugins(folders)]
        for candidate in candidates:
            candidate.info.enabled = candidate.info.name not in off
        known = [candidate.info.name for candidate in candidates]
        for name in sorted(off.difference(known)):
            _log.warning("there is no plugin %r to switch off%s", name, suggestion(name, known))
        trace = os.environ.get("TORC_TRACE_PLUGINS", "") not in ("", "0")
        return cls(candidates, trace=trace, folders=folders, known=KnownPlugins())

    @property
    def refused_folders(self) -> list[ProjectFolder]:
        """The project folders with an enabled plugin that was not imported because the folder is not trusted."""
        wanted = {each.info.source for each in self._candidates if each.info.enabled and each.info.refused}
        return [
            folder
            for folder in self._folders
            if folder.refusal is not None and any(str(folder.path / f"{name}.py") in wanted for name in folder.plugins)
        ]

    def infos(self) -> list[PluginInfo]:
        """Return all plugins sorted by name, including disabled and unusable ones."""
        return [candidate.info for candidate in self._candidates]

    def info(self, name: str) -> PluginInfo:
        """Return one plugin.

        Raises:
            UnknownNameError: no plugin has this name.
        """
        for candidate in self._candidates:
            if candidate.info.name == name:
                return candidate.info
        known = [candidate.info.name for candidate in self._candidates]
        raise UnknownNameError("plugin", name, known, self.how_to_get("plugin", name))

    def check_offers(self) -> None:
        """Call each hook that only offers something, and set the error of each plugin that raises in one or has none.

        Commands import plugins and call these hooks when they need them; this is for lists of plugins.
        """
        self._import(self._deferred)
        by_name = {candidate.info.name: candidate for candidate in self._candidates if candidate.info.error is None}
        for hook, check in _OFFERS.items():
            failed = {candidate.info.name for candidate in self._candidates if candidate.info.error is not None}
            for name, outcome in self._calls.ask(hook, check, without=failed):
                if isinstance(outcome, FailedAnswer) and (candidate := by_name.pop(name, None)) is not None:
                    candidate.fail(f"raised in {hook}: {describe_error(outcome.error)}", outcome.error)
        for candidate in by_name.values():
            info = candidate.info
            if info.enabled and not info.hooks and info.kind is PluginKind.ENTRY_POINT:
                candidate.fail(f"it offers no hook: {info.source} has no function of a hook's name with @hookimpl")

    # --- registration -----------------------------------------------------------------------------

    def import_for(self, *hooks: str) -> None:
        """Import the plugins that implement one of these hooks, for a process that may call it long after its start.

        A plugin that cannot be imported is reported now, and not when the hook is called.
        """
        failed = []
        for candidate in self._candidates:
            facts = self._deferred.get(candidate.info.name)
            if facts is None or not any(each.hook in hooks for each in facts.hooks):
                continue
            try:
                candidate.load_watched()  # its stand-in calls what is imported now
            except (Exception, SystemExit) as error:
                _set_aside(candidate, error)
                failed.append(candidate.info.name)
        self._import(failed)

    def import_all(self) -> None:
        """Import all plugins and their executors, for a process that may need any of them long after its start."""
        self._import(self._deferred)
        self.executors()

    def _import(self, plugins: Collection[str]) -> None:
        """Register the plugins themselves in place of their stand-ins."""
        if plugins:
            self._undeferred.update(plugins)
            self._register_all()

    def _register_all(self) -> None:
        self._pluggy = pluggy.PluginManager(hookspecs.PROJECT)
        self._pluggy.add_hookspecs(hookspecs)
        self._deferred.clear()
        for candidate in registration_order(self._candidates):
            self._register(candidate)
        built_in = {each.info.name for each in self._candidates if each.info.kind is PluginKind.BUILT_IN}
        self._calls.use(self._pluggy, unwatched=built_in)

    def _register(self, candidate: PluginCandidate) -> None:
        """Register a plugin, or a stand-in for one of which enough is known."""
        info = candidate.info
        if info.error is not None or not info.enabled:
            return
        facts = self._facts(candidate)
        try:
            if facts is not None:
                self._deferred[info.name] = facts
                info.hooks = sorted(hook.hook for hook in facts.hooks)
                self._pluggy.register(deferred_plugin(info.name, facts, candidate.load_watched), info.name)
                return
            plugin = candidate.load_watched()
            hooks = implemented_hooks(self._pluggy, plugin, info.name)
            info.hooks = sorted(hooks.values())
            self._pluggy.register(plugin, info.name)
            self._note(candidate, plugin, hooks)
        except (Exception, SystemExit) as error:  # a plugin's import may do anything, also sys.exit()
            _set_aside(candidate, error)

    def _facts(self, candidate: PluginCandidate) -> PluginFacts | None:
        """Return what is known of a plugin; None if it has to be imported."""
        if self._known is None or candidate.entry is None or candidate.info.name in self._undeferred:
            return None
        return self._known.get(candidate.entry)

    def _note(self, candidate: PluginCandidate, plugin: object, hooks: Mapping[str, str]) -> None:
        """Take the hooks of an imported plugin in."""
        if self._known is None or candidate.entry is None:
            return
        found = {}
        for attribute, hook in hooks.items():
            own = [each for each in getattr(self._pluggy.hook, hook).get_hookimpls() if each.plugin is plugin]
            found.update({each.function: hook_facts(each, hook, attribute) for each in own})
        self._known.note(candidate.entry, found)

    # --- the hooks --------------------------------------------------------------------------------

    def executors(self) -> dict[str, type[Executor]]:
        """Return the executors by name; names that two plugins offer are left out."""
        return {name: offers[0][1] for name, offers in self._executor_offers()[0].items() if len(offers) == 1}

    def executor_names(self) -> list[str]:
        """Return the names of the executors without importing the plugins of which they are known."""
        offers, _ = self._executor_offers(without=self._deferred)
        names = {name: len(found) for name, found in offers.items()}
        for facts in self._deferred.values():
            for name in facts.executors or ():
                names[name] = names.get(name, 0) + 1
        return [name for name, owners in names.items() if owners == 1]

    def lazy_executors(self) -> LazyExecutors:
        """Return the executors by name; each is looked up at its first use, when it may turn out to be missing."""

        def find(name: str) -> type[Executor]:
            try:
                return self.executor(name)
            except PluginError as error:
                raise KeyError(name) from error

        names = self.executor_names()
        silent = {name for facts in self._deferred.values() for name in facts.silent_executors}
        return LazyExecutors(names, find, [name for name in names if name not in silent])

    def executor(self, name: str) -> type[Executor]:
        """Return the executor of a name.

        Raises:
            UnknownNameError: no plugin offers it, and all plugins answered.
            PluginError: two plugins offer it, or none offers it and a plugin could not answer.
        """
        offers, troubles = self._executor_offers(name)
        if name not in offers:
            offers, troubles = self._executor_offers()
        found = offers.get(name, [])
        if len(found) > 1:
            raise PluginError(clash_message("executor", name, [plugin for plugin, _ in found]))
        if found:
            return found[0][1]
        if troubles:
            broken = "; ".join(f"plugin {plugin}: {describe_error(error)}" for plugin, error in troubles)
            first_error = troubles[0][1]
            raise PluginError(f"no executor {name!r}, and not every plugin could be asked: {broken}") from first_error
        raise UnknownNameError("executor", name, offers, self.how_to_get("executor", name))

    def executor_label(self, name: str) -> str:
        """Return an executor with the plugin that offers it, for messages."""
        for plugin, _ in self._executor_offers(name)[0].get(name, []):
            info = self.info(plugin)
            return f"executor {name!r} (plugin {plugin}{f', {origin_of(info)}' if info.distribution else ''})"
        return f"executor {name!r}"

    def how_to_get(self, kind: str, name: str) -> str:
        """Return how a user gets what another distribution offers, or the right name; empty if none offers it.

        Args:
            kind: As in `torc_framework.distributions.Distribution.offers`.
            name: The name that no plugin offers.
        """
        found = distribution_of(kind, name)
        if found is None:
            return how_to_get(kind, name)
        for info in self.infos():
            if info.distribution == found.name and not info.enabled:
                switch = "--disable-plugin or TORC_DISABLE_PLUGINS"
                return f"it belongs to the plugin {info.name!r}, which is disabled by {switch}"
        return found.how_to_get

    def needs_scheduler(self, executor: str) -> bool:
        """Return whether requests for nodes of an executor have to name a scheduler; True for an unknown executor."""
        if executor not in self.executor_names():
            return True
        found = self.executor(executor)
        return not issubclass(found, Allocator) or found.scheduler_kind is not None

    def executors_of(self, plugin: str) -> list[type[Executor]]:
        """Return the executors that one plugin offers."""
        offers, _ = self._executor_offers()
        return [executor for found in offers.values() for owner, executor in found if owner == plugin]

    def _executor_offers(
        self, name: str | None = None, *, without: Collection[str] = ()
    ) -> tuple[dict[str, list[tuple[str, type[Executor]]]], list[tuple[str, BaseException]]]:
        """Return the plugins that offer each executor, and the plugins that could not answer with their errors.

        Args:
            name: Leave plugins out of which it is known that they offer no executor of this name.
            without: Leave these plugins out.
        """
        if name is not None:
            without = [plugin for plugin, facts in self._deferred.items() if name not in (facts.executors or ())]
        offers: dict[str, list[tuple[str, type[Executor]]]] = {}
        troubles: list[tuple[str, BaseException]] = []
        for candidate in self._candidates:
            if candidate.info.error is not None:
                troubles.append((candidate.info.name, candidate.cause or PluginError(candidate.info.error)))
        entries = {candidate.info.name: candidate.entry for candidate in self._candidates}
        for plugin, outcome in self._calls.ask("torc_executors", executor_classes, without=without):
            if isinstance(outcome, FailedAnswer):
                troubles.append((plugin, outcome.error))
                continue
            if self._known is not None and (entry := entries[plugin]) is not None:
                self._known.note_executors(entry, outcome)
            for executor in outcome:
                offers.setdefault(executor.name, []).append((plugin, executor))
        if self._known is not None:
            self._known.save([entry for entry in entries.values() if entry is not None])
        return offers, troubles

    def rule_keys(self) -> RuleSchema:
        """Return the JSON-schema fragments of all keys of failure rules.

        Raises:
            PluginError: a plugin raised, or names a key that belongs to the core or to another plugin.
        """
        schema: dict[str, Mapping[str, Any]] = {}
        owners: dict[str, str] = {}
        for plugin, outcome in self._calls.ask("torc_failure_rule_keys", mapping):
            if isinstance(outcome, FailedAnswer):
                raise PluginError(f"plugin {plugin} could not name its failure rule keys") from outcome.error
            for key, fragment in outcome.items():
                if key in CORE_RULE_KEYS:
                    raise PluginError(f"plugin {plugin} claims the failure rule key {key!r}, which is the core's own")
                if key in owners:
                    raise PluginError(clash_message("failure rule key", key, [owners[key], plugin]))
                owners[key], schema[key] = plugin, fragment
        return schema

    def action_types(self) -> dict[str, ActionType]:
        """Return the action types by name.

        Raises:
            PluginError: two plugins offer a type of the same name.
        """
        types: dict[str, ActionType] = {}
        owners: dict[str, str] = {}
        for plugin, offered in self._calls.all("torc_action_types", list_of(ActionType)):
            for action_type in offered:
                if action_type.name in owners:
                    raise PluginError(
                        clash_message("action type", action_type.name, [owners[action_type.name], plugin])
                    )
                owners[action_type.name], types[action_type.name] = plugin, action_type
        return types

    def hpc_profiles(self) -> dict[str, HpcProfile]:
        """Return the HPC profiles by name; of several with one name, that of the first plugin."""
        profiles: dict[str, HpcProfile] = {}
        for _, offered in self._calls.all("torc_hpc_profiles", list_of(HpcProfile)):
            for profile in offered:
                profiles.setdefault(profile.name, profile)
        return profiles

    def classify(self, observation: ExitObservation) -> ExitVerdict:
        """Return the classification of an ending; `ExitClass.UNKNOWN` if no plugin answers."""
        verdict = self._calls.first("torc_classify_exit", instance_of(ExitVerdict), observation=observation)
        return verdict or ExitVerdict(ExitClass.UNKNOWN, "no classifier had an opinion", confidence=0.0)

    def judges_clean_exits(self) -> bool:
        """Return whether a plugin may classify the exit with code 0 of a job without output files as a failure."""
        classifiers = self._calls.chains["torc_classify_exit"]
        return not all(hookspecs.is_declared_to_accept_clean_exits(each.function) for each in classifiers)

    def match_failure(self, rule: FailureRule, failure: Failure) -> RuleAction | None:
        """Return the action of a rule that matches a failure; None if it does not match or no plugin answers."""
        answer = self._calls.first("torc_match_failure", rule_match, rule=rule, failure=failure)
        return RuleAction.RETRY if answer is True else answer or None

    def decide_recovery(self, job: FailedJob) -> RecoveryDecision | None:
        """Return the first policy's decision on a failed job, with the policy's name; None if no policy answers."""
        for plugin, answer in self._calls.ask("torc_decide_recovery", instance_of(RecoveryDecision), job=job):
            if not isinstance(answer, FailedAnswer):
                return evolve(answer, decided_by=plugin)
        return None

    def recovery_options(self) -> dict[str, type[Any]]:
        """Return the options classes of recovery policies by plugin, in the order of the plugins."""
        return dict(self._calls.all("torc_recovery_options", options_class))

    def classify_pending(self, failures: Sequence[Failure], context: PendingContext) -> dict[int, PendingVerdict]:
        """Return verdicts on jobs that wait for one, by job id; of several, that of the first plugin."""
        verdicts: dict[int, PendingVerdict] = {}
        check = mapping_of(PendingVerdict)
        for plugin, answer in self._calls.all("torc_classify_pending", check, failures=failures, context=context):
            for job_id, verdict in answer.items():
                verdicts.setdefault(job_id, verdict if verdict.judge else evolve(verdict, judge=plugin))
        return verdicts

    def log_patterns(self) -> list[LogPattern]:
        """Return all log patterns, in the order of the plugins."""
        answers = self._calls.all("torc_log_patterns", list_of(LogPattern))
        return [pattern for _, offered in answers for pattern in offered]

    def emit(self, event: Mapping[str, Any]) -> None:
        """Pass an event to all plugins."""
        for _ in self._calls.ask("torc_on_event", lambda answer: answer, event=event):
            pass


def _set_aside(candidate: PluginCandidate, error: BaseException) -> None:
    """Mark a plugin that cannot be imported or registered, with a warning."""
    info = candidate.info
    info.hooks = []
    candidate.fail(describe_error(error), error)
    _log.warning("plugin %s (%s) cannot be used: %s", info.name, origin_of(info), info.error)
