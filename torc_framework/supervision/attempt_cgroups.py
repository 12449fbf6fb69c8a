"""Control groups of the attempts of one launcher: their names, the plan for each attempt, and their removal."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from torc_framework.supervision import cgroup_location
from torc_framework.supervision.supervisor import cgroups

if TYPE_CHECKING:
    from torc_framework.supervision.supervisor import CgroupPlan, Key

CGROUP_PATIENCE_S: Final = 0.5
"""How long the launcher tries to remove control groups that were left."""
_LOG: Final = logging.getLogger("torc_framework.supervision")


class AttemptCgroups:
    """Control groups of the attempts of one launcher.

    Args:
        mode: When attempts with a memory limit have control groups: ``auto`` (where they can be made), ``off`` (never)
            or ``require`` (an attempt without one is not started).
        journal: Path of the first journal, from which the groups have their names.
        is_required_now: Find the location at once, and raise `CgroupsUnavailable` if there is none; otherwise the first
            attempt with a memory limit does that.
    """

    def __init__(self, mode: str, journal: Path, *, is_required_now: bool) -> None:
        self._mode, self._journal = mode, journal
        self.home = cgroup_location.own_cgroup()
        """Group of this process."""
        self._parent = self._find_parent() if is_required_now else None
        self._is_searched = is_required_now

    def _find_parent(self) -> cgroups.Cgroup | None:
        """Return the group in which groups of attempts are created; None if none can be created.

        Raises:
            CgroupsUnavailable: none can be created, but the mode requires them.
        """
        try:
            return cgroup_location.find_parent(self.home)
        except cgroup_location.CgroupsUnavailable as error:
            if self._mode == "require":
                raise
            _LOG.info("event=no_memory_cgroups reason=%r", str(error))
            return None

    def plan(self, key: Key, limit_bytes: int | None) -> CgroupPlan | None:
        """Return the control group that an attempt is to have; None if it has none."""
        if limit_bytes is None or self._mode == "off":
            return None
        if not self._is_searched:
            self._parent, self._is_searched = self._find_parent(), True
        if self._parent is None:
            return None
        version, parent = self._parent
        return version, f"{parent}/{_prefix(self._journal)}{_suffix(key)}", limit_bytes, self._mode == "auto"

    def remove_own(self) -> None:
        """Remove the groups of this launcher's attempts that still exist; processes in them go on in its own group."""
        if self._parent is not None:
            self.remove(self._journal, self.home)

    def remove(self, journal: Path, home: Any, killed: set[Key] | None = None) -> None:
        """Remove control groups that a launcher has left.

        Args:
            journal: Path of that launcher's first journal.
            home: Group of that launcher, as it is in its state.
            killed: Remove the groups of these attempts only, and kill the processes in them.
        """
        if not isinstance(home, (list, tuple)):
            return
        prefix, wanted = _prefix(journal), None if killed is None else {_suffix(key) for key in killed}
        found = cgroup_location.find_by_prefix((int(home[0]), str(home[1])), prefix)
        deadline = time.monotonic() + CGROUP_PATIENCE_S  # a group can be removed only shortly after its last process
        for cgroup in found:
            if wanted is None or cgroup[1].rpartition(prefix)[2] in wanted:
                while not cgroups.remove(cgroup, self.home, kill=wanted is not None) and time.monotonic() < deadline:
                    time.sleep(0.005)


def is_in_own_cgroup(pid: int, key: Key) -> bool:
    """Return whether the first process of an attempt is in the attempt's own control group."""
    try:
        lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    except OSError:
        return False
    return any("/torc_" in line and line.endswith(f".{_suffix(key)}") for line in lines)


def _prefix(journal: Path) -> str:
    """Return the prefix of the names of all groups for attempts of a journal."""
    return f"torc_{journal.stem}."


def _suffix(key: Key) -> str:
    return f"j{key[0]}_a{key[1]}"
