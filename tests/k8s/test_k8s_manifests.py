"""`torc k8s manifests` with ``-f json``."""

import json

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
