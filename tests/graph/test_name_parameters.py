"""Tests of parameters that are read from names of jobs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torc_framework.graph.name_parameters import name_families, value_order


@pytest.mark.parametrize(
    ("names", "label"),
    [
        (["train_lr0.1_bs32", "train_lr0.2_bs64"], "train_lr{lr}_bs{bs}"),
        (["train_lr1e-3", "train_lr2.5e-4"], "train_lr{lr}"),
        (["train_opt_adam", "train_opt_sgd"], "train_opt_{opt}"),
        (["train_adam_1", "train_sgd_2"], "train_{parameter_1}_{parameter_2}"),
        (["work_1", "work_2"], "work_{parameter_1}"),
        (["x_lr1_lr1", "x_lr2_lr2"], "x_lr{lr}_lr{lr_2}"),
        (["1_a", "2_a"], "{parameter_1}_a"),
        (["a_lr1_v2", "a_lr3_v2"], "a_lr{lr}_v2"),
    ],
)
def test_names_of_parameters(names: list[str], label: str) -> None:
    (family,) = name_families(names)
    assert family.label == label


def test_families_are_told_apart_by_form_and_first_word() -> None:
    names = ["train_1", "train_2", "train_3", "eval_1", "eval_2", "prepare", "train_1_b"]
    found = name_families(names)
    assert [(family.label, family.members) for family in found] == [
        ("train_{parameter_1}", [0, 1, 2]),
        ("eval_{parameter_1}", [3, 4]),
    ]


def test_names_without_differences_have_no_parameters() -> None:
    assert name_families(["a", "b", "c_1"]) == []
    assert name_families([]) == []


def test_values_are_in_their_order() -> None:
    assert sorted(["b", "10", "9", "1e-3", "0.5", "a"], key=value_order) == ["1e-3", "0.5", "9", "10", "a", "b"]


@given(st.lists(st.text(max_size=12), unique=True))
def test_every_name_is_in_at_most_one_family_and_is_what_its_parts_say(names: list[str]) -> None:
    members = [position for family in name_families(names) for position in family.members]
    assert len(members) == len(set(members))
    for family in name_families(names):
        assert ["".join(parts) for parts in family.parts] == [names[position] for position in family.members]
        for parameter in family.parameters:
            assert {parts[parameter.part] for parts in family.parts} == set(parameter.values)
