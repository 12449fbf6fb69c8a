"""The contract suite of HPC profiles."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar, Final

from torc_framework.api import HpcProfile, Partition
from torc_framework.testing.support.clauses import answer, broken, require
from torc_framework.testing.support.purity import SAME, require_soon
from torc_framework.testing.support.suites import ContractSuite

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.+")
_HOSTS: Final = ("localhost", "a", "node-17", "login2.example.org", "DESKTOP-4F3K", "ip-10-0-0-1.ec2.internal")
"""Names of machines that have nothing in common."""
MIB_PER_CPU: Final = (150, 256 * 1024)
"""Least and most memory of a node for each of its CPUs, MiB; other amounts are in another unit."""
MOST_NODE_MIB: Final = 64 * 1024**2
MOST_CPUS: Final = 4096
MOST_GPUS: Final = 64
GPU_GIB: Final = (1, 1024)
DAY_S: Final = 86_400
WALLTIME_S: Final = (300, 366 * DAY_S)
"""Shortest and longest walltime of a partition."""
_USUAL_HOURS: Final = frozenset({1, 2, 3, 4, 6, 8, 12, 16, 18, 24, 36, 48, 72, 96, 120, 144, 168, 240, 336, 720})
"""Usual walltimes in hours."""


def _walltime_unit(seconds: int) -> str | None:
    """Return the unit in which a walltime seems to be, if that is not seconds."""
    low, high = WALLTIME_S
    if seconds % 60 == 0 and seconds // 60 in _USUAL_HOURS and seconds % low != 0:
        return "minutes"
    if seconds < low:
        return "minutes, hours or days"
    is_odd = seconds > 31 * DAY_S and seconds % DAY_S != 0 and seconds % 1000 == 0
    return "milliseconds" if seconds > high or is_odd else None


def _memory_unit(part: Partition) -> str | None:
    """Return the unit in which a node's memory seems to be, if that is not MiB."""
    low, high = MIB_PER_CPU
    if part.memory_mb < low * part.cpus_per_node:
        return "GB or GiB"
    return "KiB or bytes" if part.memory_mb > min(high * part.cpus_per_node, MOST_NODE_MIB) else None


class HpcProfileContract(ContractSuite):
    """Tests that every HPC profile passes.

    Attributes:
        plugin: The module or object with ``torc_hpc_profiles``.
    """

    plugin: ClassVar[Any]

    @property
    def _profiles(self) -> Sequence[HpcProfile]:
        said: Any = answer(self.plugin.torc_hpc_profiles, "torc_hpc_profiles never raises")
        require(isinstance(said, Sequence), "torc_hpc_profiles answers with a list of profiles", said)
        profiles: Sequence[HpcProfile] = said
        for profile in profiles:
            require(isinstance(profile, HpcProfile), "offer values of HpcProfile", profile)
        return profiles

    @property
    def _partitions(self) -> list[tuple[str, Partition]]:
        return [(f"{each.name}/{part.name}", part) for each in self._profiles for part in each.partitions]

    def test_profiles_have_names_of_their_own(self) -> None:
        """Names are unique, and can be typed as one word."""
        profiles = self._profiles
        require(profiles, "offer at least one profile", profiles)
        for profile in profiles:
            require(_NAME.fullmatch(profile.name), "a profile's name is one word that can be typed", profile.name)
        twice = [name for name, count in Counter(profile.name for profile in profiles).items() if count > 1]
        require(not twice, "names of profiles differ", twice)

    def test_profiles_are_always_the_same(self) -> None:
        """The hook answers at once, and the same whenever it is called."""
        require_soon(answer, self.plugin.torc_hpc_profiles, "torc_hpc_profiles never raises")
        require(self._profiles == self._profiles, f"torc_hpc_profiles: {SAME}")

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
                found = [name for name in _HOSTS if answer(expression.search, "detect_hostname can be searched", name)]
                fits_all = expression.search("") is not None or len(found) == len(_HOSTS)
                require(not fits_all, "detect_hostname does not fit every machine", profile.detect_hostname)
        for name in ("detect_env_var", "detect_hostname"):
            rules = Counter(rule for profile in self._profiles if (rule := getattr(profile, name)) is not None)
            twice = [rule for rule, count in rules.items() if count > 1]
            require(not twice, f"{name} of each profile differs: the first one that fits counts", twice)

    def test_partitions_have_names_and_amounts(self) -> None:
        """Names of partitions are unique, and amounts are above 0."""
        for profile in self._profiles:
            names = Counter(partition.name for partition in profile.partitions)
            twice = [name for name, count in names.items() if count > 1]
            require(not twice, f"names of partitions of {profile.name} differ", twice)
        for name, part in self._partitions:
            is_word = part.name and not re.search(r"[\s,]", part.name)
            require(is_word, "a partition's name is one word", part.name)
            amounts = (part.cpus_per_node, part.memory_mb, part.max_walltime_secs)
            require(min(amounts) > 0, f"{name} has whole numbers of CPUs, MiB and seconds above 0", amounts)
            require(part.cpus_per_node <= MOST_CPUS, f"cpus_per_node of {name} are those of one node", amounts)
            gpus = part.gpus_per_node, part.gpu_type, part.gpu_memory_gb
            require(part.gpus_per_node > 0 or gpus == (0, None, None), f"{name} has no GPU type without GPUs", gpus)
            require(part.gpus_per_node <= MOST_GPUS, f"gpus_per_node of {name} are those of one node", gpus)
            nodes = part.min_nodes, part.max_nodes
            can_be = part.max_nodes is None or part.min_nodes <= part.max_nodes
            require(part.min_nodes > 0 and can_be, f"{name} takes some number of nodes", nodes)

    def test_amounts_are_in_their_units(self) -> None:
        """Memory of nodes is in MiB, walltimes are in seconds, and memory of GPUs is in GiB."""
        for name, part in self._partitions:
            unit = _memory_unit(part)
            clause = f"memory_mb of {name} is in MiB: 240 GiB are 245760"
            require(unit is None, clause, f"{part.memory_mb}, which seems to be in {unit}")
            unit = _walltime_unit(part.max_walltime_secs)
            clause = f"max_walltime_secs of {name} is in seconds: 2 days are 172800"
            require(unit is None, clause, f"{part.max_walltime_secs}, which seems to be in {unit}")
            low, high = GPU_GIB
            gpu = part.gpu_memory_gb
            require(gpu is None or low <= gpu <= high, f"gpu_memory_gb of {name} is in GiB, of one GPU", gpu)

    def test_something_can_be_asked_for_without_a_name(self) -> None:
        """A profile has a partition that is chosen by what jobs request, without being named."""
        for profile in self._profiles:
            if profile.partitions:
                free = [part.name for part in profile.partitions if not part.requires_explicit_request]
                require(free, f"profile {profile.name} has a partition that need not be named", profile.partitions)

    def test_charges_are_no_gifts(self) -> None:
        """Charge factors of node hours are numbers, and not negative."""
        for profile in self._profiles:
            factors = profile.charge_factor_cpu, profile.charge_factor_gpu
            is_number = all(math.isfinite(factor) for factor in factors)
            require(is_number and min(factors) >= 0, f"charge factors of {profile.name} are not negative", factors)
