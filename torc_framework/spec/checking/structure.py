"""Third stage: conversion of checked data into a `WorkflowSpec`, without coercion of values."""

from collections.abc import Callable
from functools import cache
from typing import Any

import cattrs
from attrs import fields
from cattrs.cols import is_sequence, list_structure_factory

from torc_framework.spec.language.model import (
    ActionSpec,
    FileSpec,
    InlineRequirementsSpec,
    JobSpec,
    UserDataSpec,
    WorkflowSpec,
)


def structure(data: dict[str, Any]) -> WorkflowSpec:
    """Return the spec for checked data, and use the data up: its list of jobs becomes that of the spec.

    The data of a job is freed when the job is made, because a file may have a million of them.

    Raises:
        cattrs.BaseValidationError: the data was not checked and does not fit.
    """
    jobs = data["jobs"]
    spec = _converter().structure({**data, "jobs": []}, WorkflowSpec)
    for position, job in enumerate(jobs):
        jobs[position] = _job(job, JobSpec)
    spec.jobs = jobs
    return spec


@cache
def _converter() -> cattrs.Converter:
    converter = cattrs.Converter(forbid_extra_keys=True)
    for scalar in (str, int, bool, float):
        converter.register_structure_hook(scalar, _exactly(scalar))
    converter.register_structure_hook_factory(is_sequence, _list_hook)
    for flat in (FileSpec, UserDataSpec):
        converter.register_structure_hook(flat, _by_keyword)
    converter.register_structure_hook(JobSpec, _job)
    converter.register_structure_hook(ActionSpec, _action)
    converter.register_structure_hook(str | int | float | bool, lambda value, _: value)
    return converter


def _exactly(kind: type) -> Callable[[Any, Any], Any]:
    def hook(value: Any, _: Any) -> Any:
        if type(value) is kind:
            return value
        if kind is float and type(value) is int:
            return float(value)
        raise TypeError(f"expected {kind.__name__}, got {type(value).__name__}")

    return hook


def _list_hook(kind: Any, converter: cattrs.BaseConverter) -> Callable[[Any, Any], Any]:
    inner = list_structure_factory(kind, converter)

    def hook(value: Any, wanted: Any) -> Any:
        if not isinstance(value, list):
            raise TypeError(f"expected a list, got {type(value).__name__}")
        return inner(value, wanted)

    return hook


def _by_keyword(value: Any, kind: type) -> Any:
    """Convert jobs, files and user data, of which there may be 100,000, without hooks for their plain fields."""
    return kind(**value)


def _job(value: dict[str, Any], _: Any) -> JobSpec:
    """Convert a job; resource requirements that are written in it become an object."""
    job = JobSpec(**value)
    if isinstance(inline := value.get("resource_requirements"), dict):
        job.resource_requirements = InlineRequirementsSpec(**inline)
    return job


_ACTION_KEYS = frozenset(attribute.name for attribute in fields(ActionSpec)) - {"settings"}


def _action(value: dict[str, Any], _: Any) -> ActionSpec:
    """Convert an action; keys of a plugin's action type, or its mapping ``settings``, are separated from the others."""
    known = {key: item for key, item in value.items() if key in _ACTION_KEYS}
    settings = {key: item for key, item in value.items() if key not in _ACTION_KEYS}
    return ActionSpec(**known, settings=settings.get("settings", settings))
