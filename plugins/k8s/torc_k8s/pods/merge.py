"""Merges one Pod into another: mappings key by key, lists of named things by their names, all else replaced."""

from collections.abc import Mapping
from typing import Any, Final

from attrs import frozen


@frozen
class ListMerge:
    """How two lists at one field become one.

    Attributes:
        key: Field that identifies an item; empty: the items of the second list follow those of the first.
        is_deep: Items with the same key are merged; else the item of the second list replaces the other.
    """

    key: str = ""
    is_deep: bool = False


LISTS: Final[Mapping[str, ListMerge]] = {
    "containers": ListMerge("name", is_deep=True),
    "initContainers": ListMerge("name", is_deep=True),
    "env": ListMerge("name"),
    "envFrom": ListMerge(),
    "volumes": ListMerge("name"),
    "volumeMounts": ListMerge("mountPath"),
    "imagePullSecrets": ListMerge("name"),
    "tolerations": ListMerge(),
}
"""How lists are merged, by the name of their field; the list of any other field is replaced."""


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``base`` with everything of ``over`` in it; neither is changed. A null in ``over`` is no value."""
    merged = dict(base)
    for key, value in over.items():
        if value is None:
            continue
        there = merged.get(key)
        if isinstance(there, Mapping) and isinstance(value, Mapping):
            merged[key] = merge(there, value)
        elif isinstance(there, list) and isinstance(value, list) and key in LISTS:
            merged[key] = _merge_lists(there, value, LISTS[key])
        else:
            merged[key] = value
    return merged


def _merge_lists(base: list[Any], over: list[Any], how: ListMerge) -> list[Any]:
    """Return one list: the items of ``base`` in their order, then those of ``over`` that are new."""
    if not how.key:
        return [*base, *(item for item in over if item not in base)]
    merged = {item[how.key]: item for item in base}
    for item in over:
        there = merged.get(item[how.key])
        merged[item[how.key]] = merge(there, item) if there is not None and how.is_deep else item
    return list(merged.values())
