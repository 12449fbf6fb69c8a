"""Merging of Pods: properties, and each list that has a rule of its own."""

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from torc_k8s.pods.merge import LISTS, merge

LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=3),
    max_leaves=8,
)
MAPPINGS = st.dictionaries(st.text("abc", min_size=1, max_size=2), VALUES, max_size=4)


def without_nulls(value: Any) -> Any:
    return (
        {key: without_nulls(each) for key, each in value.items() if each is not None}
        if isinstance(value, dict)
        else value
    )


@given(MAPPINGS, MAPPINGS)
def test_everything_of_the_second_is_in_the_result_and_neither_is_changed(base: Any, over: Any) -> None:
    before = copy.deepcopy((base, over))
    merged = merge(base, over)
    assert (base, over) == before
    for key, value in over.items():
        if value is not None and not isinstance(value, dict):
            assert merged[key] == value
    assert merged.keys() == base.keys() | {key for key, value in over.items() if value is not None}


@given(MAPPINGS)
def test_merging_with_nothing_or_itself_changes_nothing(pod: Any) -> None:
    assert merge(pod, {}) == pod
    assert without_nulls(merge({}, pod)) == without_nulls(pod)
    assert merge(pod, pod) == pod


NAMED = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from("abcd"), "value": st.integers()}),
    max_size=4,
    unique_by=lambda each: each["name"],
)


@given(NAMED, NAMED)
def test_a_list_of_named_items_has_each_name_once(base: list[dict[str, Any]], over: list[dict[str, Any]]) -> None:
    merged = merge({"env": base}, {"env": over})["env"]
    assert {each["name"]: each["value"] for each in merged} == {each["name"]: each["value"] for each in [*base, *over]}
    assert [each["name"] for each in merged][: len(base)] == [each["name"] for each in base]
    assert len(merged) == len({each["name"] for each in merged})


def test_containers_are_merged_deeply_and_variables_replaced() -> None:
    base = {"containers": [{"name": "main", "env": [{"name": "A", "valueFrom": {}}], "ports": [1]}, {"name": "side"}]}
    over = {"containers": [{"name": "main", "env": [{"name": "A", "value": "x"}], "image": "i"}]}
    assert merge(base, over)["containers"] == [
        {"name": "main", "env": [{"name": "A", "value": "x"}], "ports": [1], "image": "i"},
        {"name": "side"},
    ]


def test_lists_without_a_key_are_joined() -> None:
    assert not LISTS["tolerations"].key
    base, over = [{"key": "a"}], [{"key": "a"}, {"key": "b"}]
    assert merge({"tolerations": base}, {"tolerations": over})["tolerations"] == [{"key": "a"}, {"key": "b"}]
    assert merge({"args": ["a"]}, {"args": ["b"]}) == {"args": ["b"]}
