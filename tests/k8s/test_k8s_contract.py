"""The executor ``k8s`` keeps the contract of executors, with real pods."""

import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
from k8s_cluster import PYTHON, Namespace
from torc_k8s.executor.k8s_executor import K8sExecutor

from torc_framework.testing import ExecutorContract


@pytest.mark.crash
class TestPods(ExecutorContract):
    """Pods see the folder of the bench, as their node is this machine."""

    executor = K8sExecutor
    patience_s = 120.0
    unseen_signals = frozenset({signal.SIGINT, signal.SIGPIPE})  # shells say nothing of them (torc_k8s.container)
    namespace: ClassVar[Namespace]

    @pytest.fixture(autouse=True)
    def _in_namespace(self, namespace: Namespace, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(type(self), "namespace", namespace, raising=False)

    def options_in(self, folder: Path) -> Mapping[str, Any]:
        """Let pods see the folder, and run in it."""
        return {
            "kubeconfig": str(self.namespace.kubeconfig),
            "image": PYTHON,
            "working_dir": str(folder),
            "volumes": f"host:{folder}:{folder}",
        }
