"""Tests of job options: mappings of a spec become an instance of the class that an executor declares."""

from typing import Any, Literal

import pytest
from attrs import asdict, field, frozen
from hypothesis import given
from hypothesis import strategies as st

from torc_framework.api import ConfigError
from torc_framework.errors import PluginError
from torc_framework.job_options import JobOptionsError, check_job_options, structure_job_options


@frozen(kw_only=True)
class Mount:
    path: str
    read_only: bool = False
    inner: "Mount | None" = None


@frozen(kw_only=True)
class PodLike:
    image: str = ""
    policy: Literal["Always", "Never"] = "Never"
    count: int | None = None
    share: float = 1.0
    names: tuple[str, ...] = ()
    mounts: list[Mount] = field(factory=list)
    selector: dict[str, str] = field(factory=dict)
    either: str | Mount = ""
    free: Any = None

    def __attrs_post_init__(self) -> None:
        if self.image.startswith("-"):
            raise ConfigError("image must not begin with '-'")


def problems(values: dict[str, Any]) -> list[str]:
    """Return what is wrong with values, one text each."""
    with pytest.raises(JobOptionsError) as caught:
        structure_job_options(PodLike, values)
    return [str(problem) for problem in caught.value.problems]


def test_values_of_all_types_arrive() -> None:
    values = {
        "image": "a:1", "policy": "Always", "count": 3, "share": 2, "names": ["x"], "selector": {"disk": "ssd"},
        "mounts": [{"path": "/m", "read_only": True, "inner": {"path": "/n"}}], "either": {"path": "/e"},
        "free": [1, {}],
    }  # fmt: skip
    made = structure_job_options(PodLike, values)
    assert asdict(made)["mounts"][0]["inner"] == {"path": "/n", "read_only": False, "inner": None}
    assert (made.count, made.share, made.names, made.either.path) == (3, 2.0, ("x",), "/e")
    assert structure_job_options(PodLike, {}) == PodLike()


def test_a_text_stands_for_a_number_or_a_truth_value() -> None:
    made = structure_job_options(
        PodLike, {"count": "3", "share": "0.5", "mounts": [{"path": "p", "read_only": "true"}]}
    )
    assert (made.count, made.share, made.mounts[0].read_only) == (3, 0.5, True)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"imag": "x"}, "imag: unknown key 'imag'; did you mean 'image'?"),
        ({"image": 3}, "image: the number 3; expected text; put it in quotes"),
        ({"policy": "always"}, "policy: 'always'; expected one of 'Always', 'Never'; did you mean 'Always'?"),
        ({"count": "many"}, "count: 'many'; expected a whole number"),
        ({"count": True}, "count: true; expected a whole number or nothing"),
        ({"share": "inf"}, "share: 'inf'; expected a number"),
        ({"names": "x"}, "names: 'x'; expected a list"),
        ({"mounts": [{"path": "a"}, {"pat": "b"}]}, "mounts[1].pat: unknown key 'pat'; did you mean 'path'?"),
        ({"mounts": [{}]}, "mounts[0]: 'path' is missing"),
        ({"selector": {"disk": 1}}, "selector.disk: the number 1; expected text; put it in quotes"),
        ({"image": "-x"}, "image must not begin with '-'"),
    ],
)
def test_what_does_not_fit_is_named_with_its_place(values: dict[str, Any], text: str) -> None:
    assert text in problems(values)


def test_all_problems_are_told_at_once() -> None:
    assert len(problems({"imag": 1, "count": [], "mounts": [1, 2]})) == 4


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(list(PodLike.__annotations__)) | st.text(max_size=5)


@given(st.dictionaries(KEYS, JSON, max_size=4))
def test_any_json_gives_an_instance_or_problems(values: dict[str, Any]) -> None:
    try:
        made: Any = structure_job_options(PodLike, values)
    except JobOptionsError as error:
        made = error.problems
    assert made


@frozen
class Required:
    name: str


@frozen
class Unknown:
    when: set[int] = field(factory=set)


@pytest.mark.parametrize("kind", [Required, Unknown, dict, 3])
def test_a_class_that_cannot_serve_is_refused(kind: Any) -> None:
    with pytest.raises(PluginError):
        check_job_options(kind)


def test_a_class_of_all_permitted_types_is_accepted() -> None:
    check_job_options(PodLike)
