"""Stand-ins for plugins of which the hooks are known: a stand-in imports the plugin when one of its hooks is called."""

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, Final

import pluggy

from torc_framework import hookspecs
from torc_framework.plugins.known_plugins import HookFacts, PluginFacts

_ARGUMENTS: Final = "torc_arguments"
"""Attribute of a stand-in's functions: the names of their arguments."""


def deferred_plugin(name: str, facts: PluginFacts, load: Callable[[], Any]) -> ModuleType:
    """Return a plugin with the same hooks as one that is not imported yet.

    Args:
        name: Name of the plugin.
        facts: What is known of it.
        load: Imports and returns it. What it raises, the call of a hook raises.
    """
    plugin = ModuleType(name)
    for hook in facts.hooks:
        setattr(plugin, hook.attribute, _function(hook, load))
    return plugin


def _function(hook: HookFacts, load: Callable[[], Any]) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        return getattr(load(), hook.attribute)(*arguments)

    setattr(call, _ARGUMENTS, hook.arguments)
    if hook.accepts_clean_exits:
        hookspecs.accepts_clean_exits(call)
    marked: Callable[..., Any] = hookspecs.hookimpl(**hook.options)(call)
    return marked


def argument_names(implementation: pluggy.HookImpl) -> Sequence[str]:
    """Return the names of the arguments that an implementation of a hook takes, in their order."""
    names: Sequence[str] = getattr(implementation.function, _ARGUMENTS, implementation.argnames)
    return names


def hook_facts(implementation: pluggy.HookImpl, hook: str, attribute: str) -> HookFacts:
    """Return what is to be known of a registered implementation of a hook.

    Args:
        implementation: The implementation.
        hook: Name of the hook.
        attribute: Name of the function in the plugin.
    """
    return HookFacts(
        hook,
        attribute,
        tuple(implementation.argnames),
        dict(implementation.opts),
        hookspecs.is_declared_to_accept_clean_exits(implementation.function),
    )
