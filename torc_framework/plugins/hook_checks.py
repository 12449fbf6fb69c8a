"""Checks of a plugin's implementations of hooks before they are registered."""

import inspect
import warnings
from collections.abc import Callable
from typing import Any, Final

import pluggy

from torc_framework import hookspecs
from torc_framework.errors import PluginError, suggestion

ARGUMENTS: Final = {
    name: tuple(inspect.signature(function).parameters)
    for name, function in vars(hookspecs).items()
    if name.startswith("torc_") and callable(function)
}
"""Names of the arguments of each hook."""
_shown_warnings: Final[dict[Any, Any]] = {}
"""Registry of the warnings that were shown, as the module `warnings` keeps it; each is shown once."""


def implemented_hooks(manager: pluggy.PluginManager, plugin: object, plugin_name: str) -> dict[str, str]:
    """Return the hooks that a plugin implements, by the name of the function; warn of each retired argument.

    Raises:
        PluginError: an implementation does not fit the specification of its hook.
    """
    hooks = {}
    for attribute in dir(plugin):
        options = manager.parse_hookimpl_opts(plugin, attribute)
        if options is None:
            if attribute in ARGUMENTS and callable(getattr(plugin, attribute)):
                raise PluginError(f"{attribute} lacks the decorator @hookimpl")
            continue
        name = options.get("specname") or attribute
        _check_signature(plugin_name, name, getattr(plugin, attribute))
        if options.get("wrapper") or options.get("hookwrapper"):
            raise PluginError(f"{name} is declared as a wrapper; hooks of torc have no wrappers")
        hooks[attribute] = name
    return hooks


def _check_signature(plugin: str, hook: str, function: Callable[..., Any]) -> None:
    """Raise `PluginError` for an unknown hook or argument; warn of each retired argument."""
    if hook not in ARGUMENTS:
        raise PluginError(f"unknown hook {hook!r}{suggestion(hook, sorted(ARGUMENTS))}")
    known = ARGUMENTS[hook]
    for parameter in inspect.signature(function).parameters:
        if parameter not in known:
            allowed = ", ".join(known) or "none"
            raise PluginError(f"{hook} has no argument {parameter!r}; its arguments: {allowed}")
        replacement = hookspecs.RETIRED_ARGUMENTS.get(hook, {}).get(parameter)
        if replacement is not None:
            _warn_of_retired_argument(plugin, hook, parameter, replacement, function)


def _warn_of_retired_argument(
    plugin: str, hook: str, argument: str, replacement: str, function: Callable[..., Any]
) -> None:
    """Issue a DeprecationWarning that points to the plugin's function."""
    code = inspect.unwrap(function).__code__
    text = (
        f"plugin {plugin}: the argument {argument!r} of {hook} is retired and goes with the next major version; "
        f"use {replacement}"
    )
    warnings.warn_explicit(text, DeprecationWarning, code.co_filename, code.co_firstlineno, registry=_shown_warnings)
