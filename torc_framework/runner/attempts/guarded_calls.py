"""Calls of an executor's methods: exceptions and wrong answers become errors that name the executor."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from torc_framework.errors import ExecutorError, TorcError
from torc_framework.executors import Adoption, Launcher, LauncherEvent, LaunchSite
from torc_framework.plugins.watched_calls import restoring_call


def _is_json(answer: object) -> bool:
    json.dumps(answer)
    return isinstance(answer, dict)


def _are_sites(answer: object) -> bool:
    if not isinstance(answer, list | tuple) or not all(isinstance(name, str) for name in answer):
        return False
    return 0 < len(answer) == len(set(answer))


def _are_paths(answer: object) -> bool:
    return isinstance(answer, list | tuple) and all(isinstance(path, str) for path in answer)


_ANSWERS: Final[Mapping[str, tuple[str, Callable[[Any], bool]]]] = {
    "poll": (
        "a list of events",
        lambda answer: isinstance(answer, list | tuple) and all(isinstance(each, LauncherEvent) for each in answer),
    ),
    "wait_fd": ("a file descriptor or None", lambda answer: answer is None or isinstance(answer, int)),
    "sites": ("a list of names, at least one and all different", _are_sites),
    "launch_site": ("a LaunchSite or None", lambda answer: answer is None or isinstance(answer, LaunchSite)),
    "further_logs": ("a list of paths", _are_paths),
    "state": ("a dict of JSON values", _is_json),
    "adopt": ("an Adoption", lambda answer: isinstance(answer, Adoption)),
}
"""For each method with an answer that the runner needs: its name for people, and whether an answer is one."""


_SETTING_UP: Final = frozenset({"__init__", "sites", "require_access", "launch_site", "adopt", "close", "abandon"})
"""Methods in which libraries of an executor begin and end their work, so that what they change is restored; the others
are called too often."""


def guarded_call(label: str, method: str, call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Call a method of an executor and return its answer.

    Args:
        label: The executor and its plugin, for people.
        method: Name of the method.
        call: The method.
        arguments: Its arguments.
        named: Its arguments by name.

    Raises:
        TorcError: the method raised it.
        ExecutorError: it raised anything else, or its answer is not one that the contract permits.
    """
    try:
        if method in _SETTING_UP:
            answer = restoring_call(label, method, call, *arguments, **named)
        else:
            answer = call(*arguments, **named)
        expected = _ANSWERS.get(method)
        is_permitted = expected is None or expected[1](answer)
    except TorcError:
        raise
    except (Exception, SystemExit) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".rstrip(": ").split())
        raise ExecutorError(f"{label} raised in {method}: {reason}; --debug shows the traceback") from error
    if expected is not None and not is_permitted:
        shown = repr(answer)
        shown = shown if len(shown) <= _LONGEST_ANSWER else f"{shown[:_LONGEST_ANSWER]}..."
        raise ExecutorError(f"{label} answered {shown} in {method}; expected {expected[0]}")
    return answer


_LONGEST_ANSWER: Final = 80
"""Characters of a wrong answer that are shown."""


class _GuardedLauncherCalls:
    """Stands for a launcher: has its attributes, and its methods as `guarded_call` calls them.

    Its class, as ``__class__`` and ``isinstance`` tell, is that of the launcher.
    """

    def __init__(self, label: str, launcher: Launcher) -> None:
        self._guarded = label, launcher

    @property  # type: ignore[misc] # the annotation of object.__class__ is no property
    def __class__(self) -> type[Any]:
        return type(self._guarded[1])

    def __getattr__(self, name: str) -> Any:
        label, launcher = self._guarded
        value = getattr(launcher, name)
        if name.startswith("_") or not callable(getattr(Launcher, name, None)):
            return value

        def call(*arguments: Any, **named: Any) -> Any:
            return guarded_call(label, name, value, *arguments, **named)

        self.__dict__[name] = call  # the next call finds it without `__getattr__`
        return call


def with_guarded_calls(label: str, launcher: Launcher) -> Launcher:
    """Return a launcher whose methods raise nothing but `TorcError`.

    Args:
        label: The executor and its plugin, for people.
        launcher: The launcher that does the work.
    """
    return cast(Launcher, _GuardedLauncherCalls(label, launcher))
