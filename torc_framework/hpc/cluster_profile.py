"""The HPC profile and the idle nodes of the current cluster, as an installed executor describes them."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve

from torc_framework.distributions import ANY, how_to_get
from torc_framework.errors import AllocationError, UserError
from torc_framework.executors import Allocator, RunnerContext
from torc_framework.hpc.profiles import detect_profile, host_names, hostname_pattern, known_profiles, profile_named
from torc_framework.models.hpc_profiles import HpcProfile

if TYPE_CHECKING:
    from torc_framework.config.sections import HpcSection
    from torc_framework.plugins.manager import PluginManager


def current_cluster_profile(
    section: "HpcSection",
    plugins: "PluginManager",
    options: Mapping[str, Mapping[str, Any]],
    name: str | None = None,
    executor: str | None = None,
) -> HpcProfile:
    """Return the named profile, else the known profile of this machine, else one that an executor makes.

    Raises:
        UserError: there is no profile of that name; or none is for this machine, and no executor can make one.
    """
    known = known_profiles(section, plugins)
    if name is not None:
        return profile_named(known, name)
    if here := detect_profile(known.values()):
        return here
    try:
        return query_cluster_profile(plugins, options, executor)
    except (AllocationError, UserError) as error:
        raise UserError(
            f"this machine is on no known cluster, and its batch system could not be queried: {error}; name a profile "
            f"({', '.join(sorted(known))}), or describe the cluster in the configuration: 'torc hpc generate' writes "
            "that on a machine of the cluster"
        ) from None


def query_cluster_profile(
    plugins: "PluginManager", options: Mapping[str, Mapping[str, Any]], executor: str | None = None
) -> HpcProfile:
    """Return the profile that an executor makes of its cluster.

    If it contains no detection rule, the name of this machine becomes one.

    Args:
        plugins: Offer executors.
        options: Values of options by executor and name.
        executor: Name of the executor; may be left out if this machine is set up for one cluster only.

    Raises:
        UserError: the executor is unknown or cannot describe its cluster; or none is named, and it is not clear which.
        AllocationError: the cluster does not answer, or has no partitions.
    """
    chosen = _describing_executor(plugins, options, executor)
    profile = _allocator(chosen, options).cluster_profile()
    if not profile.partitions:
        raise AllocationError(
            f"{chosen.name} reports no partitions of cluster {profile.name!r}, so no job can run on it: ask its "
            "administrators, or describe its partitions in the configuration"
        )
    if profile.detect_env_var is None and profile.detect_hostname is None:
        profile = evolve(profile, detect_hostname=hostname_pattern(host_names()[-1]))
    return profile


def idle_nodes_of(
    plugins: "PluginManager", options: Mapping[str, Mapping[str, Any]], executor: str
) -> Mapping[str, Collection[str]]:
    """Return the idle nodes of an executor's cluster by partition; none if the cluster does not answer.

    Raises:
        UserError: there is no such executor.
    """
    chosen = plugins.executor(executor)
    try:
        return _allocator(chosen, options).idle_nodes() if issubclass(chosen, Allocator) else {}
    except AllocationError:
        return {}


def _allocator(chosen: type[Allocator], options: Mapping[str, Mapping[str, Any]]) -> Allocator:
    """Return an allocator without a workflow, with which the cluster can be queried."""
    here = str(Path.cwd())
    context = RunnerContext(workflow_id=0, run_id=0, output_dir=here, working_dir=here, api_url="")
    return chosen(chosen.Options(**options.get(chosen.name, {})), context)


def _describing_executor(
    plugins: "PluginManager", options: Mapping[str, Mapping[str, Any]], name: str | None
) -> type[Allocator]:
    able = {
        offered.name: offered
        for offered in plugins.executors().values()
        if issubclass(offered, Allocator) and offered.cluster_profile is not Allocator.cluster_profile
    }
    if name is not None:
        plugins.executor(name)
        if name not in able:
            raise UserError(f"executor {name!r} cannot describe a cluster{_choices_text(able)}")
        return able[name]
    if not able:
        raise UserError(f"no installed executor can describe a cluster{_choices_text(able)}")
    if len(able) == 1:
        return next(iter(able.values()))
    here = {each: offered for each, offered in able.items() if _allocator(offered, options).has_cluster()}
    if len(here) != 1:
        problem = "several executors can describe a cluster" if here else "this machine is set up for no cluster"
        raise UserError(f"{problem}{_choices_text(here or able)}")
    return next(iter(here.values()))


def _choices_text(able: Mapping[str, object]) -> str:
    if not able:
        return f"; {how_to_get('batch system', ANY)}"
    return f"; those that can: {', '.join(f'--executor {name}' for name in sorted(able))}"
