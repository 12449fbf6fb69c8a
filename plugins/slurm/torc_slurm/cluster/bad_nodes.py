"""Nodes that failed under a user's allocations; new allocations exclude them for a while.

Slurm does not use nodes that are down. It does use a node that comes back and fails again.
"""

import json
import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from torc_slurm.shared.paths import user_state_path

MAX_NODES: Final = 64
"""Most nodes that are excluded; the oldest failures are dropped first."""


class BadNodes:
    """A file with the nodes that failed: the time of the last failure and its reason.

    It is replaced as a whole. If two processes write at the same moment, the entries of one are lost; then a failed
    node may be used again.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def of_user(cls) -> "BadNodes":
        """Return the file of this user."""
        return cls(user_state_path("slurm_bad_nodes.json"))

    def remember(self, nodes: Iterable[str], reason: str) -> None:
        """Record that these nodes failed just now; errors of the file are ignored."""
        known = {**self._read(), **{node: {"at": time.time(), "reason": reason} for node in nodes}}
        newest = sorted(known.items(), key=lambda item: -item[1]["at"])[:MAX_NODES]
        self._write(dict(newest))

    def failed_within(self, seconds: float) -> dict[str, Mapping[str, Any]]:
        """Return the nodes that failed within the last ``seconds``, each with ``at`` and ``reason``."""
        begin = time.time() - seconds
        return {node: facts for node, facts in sorted(self._read().items()) if facts["at"] >= begin}

    def forget(self, nodes: Iterable[str] | None = None) -> list[str]:
        """Remove these nodes, or all; return those that were in the file."""
        known = self._read()
        gone = [node for node in (known if nodes is None else nodes) if node in known]
        if gone:
            self._write({node: facts for node, facts in known.items() if node not in gone})
        return gone

    def _read(self) -> dict[str, dict[str, Any]]:
        try:
            known = json.loads(self.path.read_text(encoding="utf-8")).items()
            return {str(node): {"at": float(each["at"]), "reason": str(each["reason"])} for node, each in known}
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return {}

    def _write(self, known: Mapping[str, Any]) -> None:
        with suppress(OSError):
            self.path.parent.mkdir(0o700, parents=True, exist_ok=True)
            beside = self.path.with_suffix(f".{os.getpid()}")
            beside.touch(0o600)
            beside.write_text(json.dumps(known, indent=2), encoding="utf-8")
            beside.replace(self.path)
