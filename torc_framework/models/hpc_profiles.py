"""HPC profiles: clusters with their partitions, as plugins and the configuration define them."""

import re
from typing import Any

from attrs import Attribute, frozen

from torc_framework.models.settings import check_types, setting


@frozen(field_transformer=check_types)
class Partition:
    """One partition (queue) of a cluster."""

    name: str = setting(doc="Its name.")
    cpus_per_node: int = setting(doc="CPU cores of a node.", low=1)
    memory_mb: int = setting(doc="Memory of a node.", unit="MiB", low=1)
    max_walltime_secs: int = setting(doc="Longest walltime of an allocation.", unit="s", low=1)
    description: str = setting("", "What it is for.")
    gpus_per_node: int = setting(0, "GPUs of a node.", low=0)
    gpu_type: str | None = setting(None, "Model of the GPUs.")
    gpu_memory_gb: int | None = setting(None, "Memory of a GPU.", unit="GiB", low=1)
    shared: bool = setting(False, "Jobs of several users share a node.")
    requires_explicit_request: bool = setting(False, "It is used only if it is requested by name.")
    min_nodes: int = setting(1, "Smallest number of nodes of an allocation.", low=1)
    max_nodes: int | None = setting(None, "Largest number of nodes of an allocation; by default any number.", low=1)


def _check_variable(text: str) -> None:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*=.+", text):
        raise ValueError("expected NAME=value")


def _check_expression(text: str) -> None:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"expected a regular expression ({error})") from None


def _check_partitions(profile: "HpcProfile", attribute: "Attribute[Any]", value: Any) -> None:
    if not (isinstance(value, tuple | list) and all(isinstance(each, Partition) for each in value)):
        named = f"HpcProfile {profile.name!r}: {attribute.name}"
        raise TypeError(f"{named} is {value!r}; expected a tuple of values of Partition")


@frozen(field_transformer=check_types)
class HpcProfile:
    """One cluster: how it is detected, what it charges, what it offers. Its definition sets its name."""

    name: str
    display_name: str = setting("", "Name for people; by default the name.")
    partitions: tuple[Partition, ...] = setting((), "Its partitions.", validator=_check_partitions)
    description: str = setting("", "What it is.")
    detect_env_var: str | None = setting(None, "`NAME=value` that is set on its nodes.", check=_check_variable)
    detect_hostname: str | None = setting(
        None, "Regular expression that is found in names of its hosts.", check=_check_expression
    )
    default_account: str | None = setting(None, "Account that is charged.")
    charge_factor_cpu: float = setting(1.0, "Charge of a node without GPUs for an hour.", low=0)
    charge_factor_gpu: float = setting(10.0, "Charge of a node with GPUs for an hour.", low=0)
