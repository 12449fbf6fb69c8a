"""Calls of the hooks of all plugins, one after the other, with checked answers.

pluggy holds the registrations. The implementations are called here and not by pluggy, where one exception ends the
whole call; here the other implementations are still called.
"""

import logging
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, TypeVar

import pluggy
from attrs import frozen

from torc_framework.errors import PluginError
from torc_framework.plugins.answer_checks import describe_error
from torc_framework.plugins.deferred_plugin import argument_names
from torc_framework.plugins.hook_checks import ARGUMENTS
from torc_framework.plugins.watched_calls import PluginInterruptedError, watched_call

_log = logging.getLogger(__name__)
_T = TypeVar("_T")


@frozen
class FailedAnswer:
    """The outcome of a plugin that raised, or whose answer the hook does not permit."""

    error: Exception


class HookCalls:
    """Calls the implementations of hooks that a pluggy manager holds.

    Args:
        trace: Write every call with its answer to standard error.
    """

    def __init__(self, *, trace: bool) -> None:
        self._trace = trace
        self._logged_errors: set[tuple[str, str]] = set()
        self._interrupted: set[tuple[str, str]] = set()
        self._unwatched: Collection[str] = ()
        self.chains: Mapping[str, list[pluggy.HookImpl]] = {}
        """The implementations of each hook in the order in which they are called."""

    def use(self, manager: pluggy.PluginManager, *, unwatched: Collection[str]) -> None:
        """Call the plugins of this manager from now on.

        Args:
            manager: Where they are registered.
            unwatched: Names of plugins that belong to the framework and are called without a watch.
        """
        self._unwatched = unwatched
        self.chains = {name: list(reversed(getattr(manager.hook, name).get_hookimpls())) for name in ARGUMENTS}

    def ask(
        self, hook: str, check: Callable[[Any], _T], *, without: Collection[str] = (), **arguments: Any
    ) -> Iterator[tuple[str, _T | FailedAnswer]]:
        """Call a hook of all other plugins in order; yield each plugin's name and checked answer, unless it is None.

        A plugin whose call of this hook a person has interrupted is not called again.
        """
        for implementation in self.chains[hook]:
            name, began = implementation.plugin_name, time.perf_counter()
            if name in without or (name, hook) in self._interrupted:
                continue
            outcome: _T | FailedAnswer | None
            try:
                if name in self._unwatched:
                    outcome = _answer(implementation, check, arguments)
                else:
                    outcome = watched_call(name, hook, _answer, implementation, check, arguments)
            except (Exception, SystemExit) as error:
                outcome = FailedAnswer(
                    error if isinstance(error, Exception) else PluginError(f"it called exit ({error})")
                )
                self._note_error(hook, name, error)
            self._traced(hook, name, began, outcome)
            if outcome is not None:
                yield name, outcome

    def first(self, hook: str, check: Callable[[Any], _T], **arguments: Any) -> _T | None:
        """Return the first answer that is not None; plugins that raise are passed over."""
        for _, outcome in self.ask(hook, check, **arguments):
            if not isinstance(outcome, FailedAnswer):
                return outcome
        return None

    def all(self, hook: str, check: Callable[[Any], _T], **arguments: Any) -> list[tuple[str, _T]]:
        """Return all answers with the names of their plugins; plugins that raise are passed over."""
        answers = self.ask(hook, check, **arguments)
        return [(name, outcome) for name, outcome in answers if not isinstance(outcome, FailedAnswer)]

    def _note_error(self, hook: str, plugin: str, error: BaseException) -> None:
        """Log a plugin's error: as a warning for the first one in each hook, with the traceback at level debug."""
        what = "raised"
        if isinstance(error, PluginInterruptedError):
            what = "was interrupted"
            self._interrupted.add((plugin, hook))
        level = logging.DEBUG if (plugin, hook) in self._logged_errors else logging.WARNING
        self._logged_errors.add((plugin, hook))
        _log.log(level, "plugin %s %s in %s: %s", plugin, what, hook, describe_error(error))
        _log.debug("traceback of plugin %s in %s", plugin, hook, exc_info=error)

    def _traced(self, hook: str, plugin: str, began: float, outcome: object) -> None:
        if self._trace:
            shown = f"raised {describe_error(outcome.error)}" if isinstance(outcome, FailedAnswer) else repr(outcome)
            print(f"torc: {hook} {plugin} {1e3 * (time.perf_counter() - began):.2f} ms: {shown}", file=sys.stderr)


def _answer(implementation: pluggy.HookImpl, check: Callable[[Any], _T], arguments: Mapping[str, Any]) -> _T | None:
    """Call a plugin and return its checked answer; the check may run the plugin's code, such as a generator."""
    answer = implementation.function(*[arguments[each] for each in argument_names(implementation)])
    return None if answer is None else check(answer)
