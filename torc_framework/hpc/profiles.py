"""Known HPC profiles, and the detection of the one for this machine.

Profiles come from the configuration, from plugins and from the framework itself. Of two profiles with the same name the
first in this order counts.
"""

import logging
import os
import re
import socket
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Final

from attrs import evolve

from torc_framework.errors import UnknownNameError, suggestion
from torc_framework.models.hpc_profiles import HpcProfile
from torc_framework.text.safe_regex import search_all

if TYPE_CHECKING:
    from torc_framework.config.sections import HpcSection
    from torc_framework.plugins.manager import PluginManager

_log: Final = logging.getLogger(__name__)


def known_profiles(section: "HpcSection", plugins: "PluginManager") -> dict[str, HpcProfile]:
    """Return all profiles by name, with the accounts of the configuration.

    A profile's account is that of ``profile_overrides``, else its own, else ``default_account`` of the section.
    """
    known = {**section.custom_profiles}
    for name, profile in plugins.hpc_profiles().items():
        known.setdefault(name, profile)
    for line in _overrides_of_nothing(section, known):
        _log.warning("%s", line)
    accounts = {name: override.default_account for name, override in section.profile_overrides.items()}
    return {
        name: evolve(
            profile,
            display_name=profile.display_name or name,
            default_account=accounts.get(name) or profile.default_account or section.default_account,
        )
        for name, profile in known.items()
    }


def overrides_of_nothing(section: "HpcSection", plugins: "PluginManager") -> list[str]:
    """Return a line for each entry of ``profile_overrides`` that changes no known profile."""
    return _overrides_of_nothing(section, {*section.custom_profiles, *plugins.hpc_profiles()})


def _overrides_of_nothing(section: "HpcSection", known: Collection[str]) -> list[str]:
    return [
        f"client.hpc.profile_overrides.{name}: there is no HPC profile of this name{suggestion(name, sorted(known))}"
        for name in section.profile_overrides
        if name not in known
    ]


def profile_named(profiles: Mapping[str, HpcProfile], name: str) -> HpcProfile:
    """Return the named profile.

    Raises:
        UnknownNameError: there is no profile of that name.
    """
    if name not in profiles:
        raise UnknownNameError("HPC profile", name, profiles)
    return profiles[name]


def detect_profile(profiles: Iterable[HpcProfile]) -> HpcProfile | None:
    """Return the first profile whose detection rule matches this machine; None if there is none."""
    return next((profile for profile in profiles if detection_reason(profile)), None)


def detection_reason(
    profile: HpcProfile, environ: Mapping[str, str] = os.environ, hostnames: Callable[[], Iterable[str]] | None = None
) -> str | None:
    """Return by what this machine is recognised as part of a profile's cluster; None if it is not."""
    if profile.detect_env_var is not None:
        variable, _, value = profile.detect_env_var.partition("=")
        if environ.get(variable) == value:
            return f"environment variable {profile.detect_env_var}"
    if profile.detect_hostname is not None:
        for hostname in (hostnames or host_names)():
            if _found(profile, profile.detect_hostname, hostname):
                return f"host name {hostname}"
    return None


def _found(profile: HpcProfile, pattern: str, hostname: str) -> bool:
    try:
        return bool(search_all(pattern, [hostname]))
    except ValueError as error:
        _log.warning("HPC profile %s: detect_hostname %s", profile.name, error)
        return False


@cache
def host_names() -> tuple[str, ...]:
    """Return the name of this machine, and its full name if that differs."""
    name = socket.gethostname()
    full = name if "." in name else socket.getfqdn()
    return (name,) if full in (name, "localhost", "localhost.localdomain") else (name, full)


def hostname_pattern(hostname: str) -> str:
    """Return a regular expression for the names of a cluster's machines, made from one name.

    It matches all names of the same domain. For a name without a domain it matches names that differ only in their last
    digits.
    """
    host, dot, domain = hostname.partition(".")
    if dot:
        return rf"\.{re.escape(domain)}$"
    stem = host.rstrip("0123456789")
    return rf"^{re.escape(stem)}[0-9]*$" if stem else rf"^{re.escape(host)}$"
