"""YAML files that are no workflows: values, and errors with file and line."""

from pathlib import Path

import pytest

from torc_framework.api import ConfigError, read_yaml_file


def test_values_and_the_lines_of_errors(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("a:\n  b: [1, no]\n", encoding="utf-8")
    file = read_yaml_file(str(path))
    assert file.value == {"a": {"b": [1, "no"]}}
    assert str(file.error(("a", "b", 1), "is wrong")) == f"{path}:2: is wrong"
    assert str(file.error(("a",), "is wrong", at_key=True)) == f"{path}:1: is wrong"
    assert str(file.error(("a", "missing"), "is missing")) == f"{path}:2: is missing"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"\xff", "is not UTF-8 text"),
        (b"a: " + b"x" * 100, "is larger than 0 KiB"),
        (b"a: [\n", "2: not valid YAML"),
        (b"a: 1\na: 2", "2: not valid YAML: key 'a' is given twice"),
    ],
)
def test_what_cannot_be_read_is_an_error(tmp_path: Path, content: bytes | None, words: str) -> None:
    path = tmp_path / "a.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        read_yaml_file(str(path), 90)
    assert str(caught.value).startswith(f"{path}:")
    assert words in str(caught.value)
