"""`torc k8s manifests` with ``-f json``."""

import json
from pathlib import Path

import pytest
import yaml
from torc_k8s.commands.manifests import rendered

from torc_framework.cli.programs.torc import main


def test_manifests_are_a_list_that_kubectl_takes(capsys: pytest.CaptureFixture[str]) -> None:
    """The objects are those of the YAML."""
    assert main(["-f", "json", "k8s", "manifests", "role", "--namespace", "jobs"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["apiVersion"], found["kind"]) == ("v1", "List")
    assert found["items"] == [*yaml.safe_load_all(rendered("role", "jobs", None))]


def test_the_containerfile_is_a_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-f", "json", "k8s", "manifests", "image"]) == 0
    assert "FROM" in json.loads(capsys.readouterr().out)["containerfile"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--namespace", "Bad_NS"), "--namespace: 'Bad_NS' is no name of a Kubernetes object"),
        (("--namespace", "a\nkind: Secret"), "is no name of a Kubernetes object"),
        (("--image", "x\ny: z"), "--image: it is 'x"),
        (("--image", "x y: z"), "--image: it is 'x y: z'; expected the name of an image"),
    ],
)
@pytest.mark.parametrize("is_written", [False, True])
def test_a_wrong_value_makes_no_manifests(
    given: tuple[str, str], message: str, is_written: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither at the terminal nor in files, into whose text it would be put."""
    output = ["--output", str(tmp_path / "new")] if is_written else []
    assert main(["k8s", "manifests", "server", *given, *output]) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.out == ""
    assert not (tmp_path / "new").exists()
