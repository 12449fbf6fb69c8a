"""The cluster that the tests of this folder use is as its manual says."""

import json
import subprocess

import pytest
from k8s_cluster import BUSYBOX, PYTHON, SCRIPT, Namespace, eventually


@pytest.mark.parametrize(("image", "code"), [(BUSYBOX, 3), (PYTHON, 4)])
def test_pods_are_real_processes(namespace: Namespace, image: str, code: int) -> None:
    command = "test $$ = 1 && exit 3" if image == BUSYBOX else "python3.11 -c 'import sqlite3' && exit 4"
    container = {"name": "main", "image": image, "command": ["sh", "-c", command.replace("$", "$$")]}
    namespace.create("pods", {"metadata": {"name": "a"}, "spec": {"restartPolicy": "Never", "containers": [container]}})

    def ended() -> bool:
        return bool(namespace.get("pods", "a")["status"]["phase"] in {"Succeeded", "Failed"})

    eventually(ended, lambda: namespace.get("pods", "a")["status"])
    (status,) = namespace.get("pods", "a")["status"]["containerStatuses"]
    assert status["state"]["terminated"]["exitCode"] == code


def test_the_account_has_the_rights_of_its_namespace_only(api_namespace: Namespace) -> None:
    """It lists its pods, and neither those of all namespaces nor nodes."""

    def may(*words: str) -> bool:
        command = [str(SCRIPT), "kubectl", "--kubeconfig", str(api_namespace.kubeconfig), "auth", "can-i", *words]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    assert may("list", "pods")
    assert not may("list", "pods", "--all-namespaces")
    assert not may("list", "nodes")
    assert json.loads(api_namespace.kubeconfig.read_text())["contexts"][0]["context"]["namespace"] == api_namespace.name
