"""The contract suite of HPC profiles."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar, Final

from torc_framework.api import HpcProfile, Partition
from torc_framework.testing.support.clauses import broken, require

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.+")


class HpcProfileContract:
    """Tests that every HPC profile passes.

    Attributes:
        plugin: The module or object with ``torc_hpc_profiles``.
    """

    plugin: ClassVar[Any]

    @property
    def _profiles(self) -> Sequence[HpcProfile]:
        profiles: Sequence[HpcProfile] = self.plugin.torc_hpc_profiles()
        return profiles

    @property
    def _partitions(self) -> list[tuple[str, Partition]]:
        return [(f"{each.name}/{part.name}", part) for each in self._profiles for part in each.partitions]

    def test_profiles_have_names_of_their_own(self) -> None:
        """Names are unique, and can be typed as one word."""
        profiles = self._profiles
        require(profiles, "offer at least one profile", profiles)
        for profile in profiles:
            require(isinstance(profile, HpcProfile), "offer values of HpcProfile", profile)
            require(_NAME.fullmatch(profile.name), "a profile's name is one word that can be typed", profile.name)
        twice = [name for name, count in Counter(profile.name for profile in profiles).items() if count > 1]
        require(not twice, "names of profiles differ", twice)

    def test_profiles_can_be_recognised(self) -> None:
        """A profile has a variable with its value, or an expression for host names that not every name matches."""
        for profile in self._profiles:
            known = profile.detect_env_var, profile.detect_hostname
            require(known != (None, None), f"profile {profile.name} says how it is recognised", known)
            if profile.detect_env_var is not None:
                is_pair = _VARIABLE.fullmatch(profile.detect_env_var)
                require(is_pair, "detect_env_var is NAME=value", profile.detect_env_var)
            if profile.detect_hostname is not None:
                try:
                    expression = re.compile(profile.detect_hostname)
                except re.error as error:
                    broken(f"detect_hostname of {profile.name} is a regular expression", error)
                require(
                    expression.search("") is None, "detect_hostname does not fit every machine", profile.detect_hostname
                )

    def test_partitions_have_names_and_amounts(self) -> None:
        """Names of partitions are unique, and amounts are above 0: memory in MiB, walltimes in seconds."""
        for profile in self._profiles:
            names = Counter(partition.name for partition in profile.partitions)
            twice = [name for name, count in names.items() if count > 1]
            require(not twice, f"names of partitions of {profile.name} differ", twice)
        for name, part in self._partitions:
            amounts = (part.cpus_per_node, part.memory_mb, part.max_walltime_secs)
            require(min(amounts) > 0, f"{name} has whole numbers of CPUs, MiB and seconds above 0", amounts)
            gpus = part.gpus_per_node, part.gpu_type, part.gpu_memory_gb
            require(part.gpus_per_node > 0 or gpus == (0, None, None), f"{name} has no GPU type without GPUs", gpus)
            nodes = part.min_nodes, part.max_nodes
            can_be = part.max_nodes is None or part.min_nodes <= part.max_nodes
            require(part.min_nodes > 0 and can_be, f"{name} takes some number of nodes", nodes)

    def test_something_can_be_asked_for_without_a_name(self) -> None:
        """A profile has a partition that is chosen by what jobs request, without being named."""
        for profile in self._profiles:
            if profile.partitions:
                free = [part.name for part in profile.partitions if not part.requires_explicit_request]
                require(free, f"profile {profile.name} has a partition that need not be named", profile.partitions)

    def test_charges_are_no_gifts(self) -> None:
        """Charge factors of node hours are not negative."""
        for profile in self._profiles:
            factors = profile.charge_factor_cpu, profile.charge_factor_gpu
            require(min(factors) >= 0, f"charge factors of {profile.name} are not negative", factors)
