"""Checks of plugins' answers: functions that return a valid answer, and raise `PluginError` for any other.

Also the text of what a plugin raised.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from torc_framework.errors import PluginError
from torc_framework.executors import Executor
from torc_framework.job_options import check_job_options
from torc_framework.models.failures import RuleAction
from torc_framework.plugin_options import check_options

_T = TypeVar("_T")


def instance_of(kind: type[_T]) -> Callable[[Any], _T]:
    """Return the check for an instance of a class."""

    def check(answer: Any) -> _T:
        if not isinstance(answer, kind):
            raise PluginError(f"answered {answer!r}; expected {kind.__name__}")
        return answer

    return check


def rule_match(answer: Any) -> bool | RuleAction:
    """Check an answer to ``torc_match_failure``."""
    return answer if isinstance(answer, RuleAction) else instance_of(bool)(answer)


def list_of(kind: type[_T]) -> Callable[[Any], list[_T]]:
    """Return the check for an iterable of instances of a class."""
    check = instance_of(kind)
    return lambda answer: [check(item) for item in answer]


def mapping(answer: Any) -> Mapping[Any, Any]:
    """Check for a mapping."""
    if not isinstance(answer, Mapping):
        raise PluginError(f"answered {answer!r}; expected a mapping")
    return answer


def mapping_of(kind: type[_T]) -> Callable[[Any], Mapping[Any, _T]]:
    """Return the check for a mapping whose values are instances of a class."""
    check = instance_of(kind)
    return lambda answer: {key: check(value) for key, value in mapping(answer).items()}


def executor_classes(answer: Any) -> list[type[Executor]]:
    """Check an answer to ``torc_executors``."""
    for item in answer:
        if not (isinstance(item, type) and issubclass(item, Executor)):
            raise PluginError(f"answered {item!r}; expected subclasses of Launcher or Allocator")
        if not isinstance(getattr(item, "name", None), str):
            raise PluginError(f"executor class {item.__qualname__} has no name")
        try:
            check_options(item.Options)
            if item.JobOptions is not None:
                check_job_options(item.JobOptions)
        except PluginError as error:
            raise PluginError(f"executor {item.name}: {error}") from None
    return list(answer)


def options_class(answer: Any) -> type[Any]:
    """Check an answer to ``torc_recovery_options``."""
    check_options(answer)
    return instance_of(type)(answer)


def describe_error(error: BaseException) -> str:
    """Return an error in one line: its class and its text, or the text alone for `PluginError`."""
    text = " ".join(str(error).split())
    return text if isinstance(error, PluginError) else f"{type(error).__name__}: {text}".rstrip(": ")
