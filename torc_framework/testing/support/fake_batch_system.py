"""A fake batch system: a folder with its state, four programs, and scripted faults.

An allocator that calls programs of its batch system calls those of this one instead: `programs` writes four of them. A
few lines of shell turn the options of the real ones into these::

    batch-submit [--name=NAME] COMMAND...   prints the id of the allocation
    batch-status ID...                      prints a line "ID STATE" for each id that is known
    batch-find NAME...                      prints a line "NAME ID STATE" for each allocation of these names
    batch-cancel ID...                      ends these; unknown ids are ignored

No allocation starts by itself: the test sets when an allocation runs and ends, which call fails, and at which moment of
a submission the requesting process receives a signal.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

VERBS: Final = ("submit", "status", "find", "cancel")
AFTER_SIGNAL_S: Final = 0.2
"""How long a submission that has sent a signal continues after it."""


class FakeAllocationState(StrEnum):
    """The state of an allocation."""

    QUEUED = "queued"
    RUNNING = "running"
    ENDED = "ended"
    CANCELED = "canceled"


class FakeBatchSystem:
    """A fake batch system, whose allocations are kept in a folder.

    Args:
        folder: An empty folder; the programs find the system by it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def _read(self, name: str, default: Any) -> Any:
        path = self.folder / f"{name}.json"
        return json.loads(path.read_text()) if path.exists() else default

    def _write(self, name: str, value: Any) -> None:
        unfinished = self.folder / f".{name}.{os.getpid()}"
        unfinished.write_text(json.dumps(value))
        unfinished.replace(self.folder / f"{name}.json")

    # --- what a test does ---------------------------------------------------------------------------

    def fail_next(self, verb: str, message: str, *, after: int = 0, times: int = 1) -> None:
        """Make ``times`` calls in a row fail, after ``after`` good ones, with this message on standard error."""
        assert verb in VERBS, f"{verb} is none of {VERBS}"
        faults = self._read("faults", {})
        self._write("faults", {**faults, verb: {"message": message, "after": after, "times": times}})

    def signal_asker(self, asker: int, number: int, *, after: int = 0, is_accepted: bool = False) -> None:
        """Make a submission, after ``after`` others, send a signal to the requesting process, as a terminal or kill(1).

        Args:
            asker: Its process id. SIGINT goes to its process group, as a Ctrl-C at a terminal does.
            is_accepted: The signal comes when the batch system has accepted the submission and its id is not told yet;
                otherwise before that.
        """
        self._write("signal", {"asker": asker, "number": number, "after": after, "is_accepted": is_accepted})

    def set_state(self, id_: str, state: FakeAllocationState) -> None:
        """Begin or end an allocation, as a real system does by itself."""
        allocations = self._read("allocations", {})
        allocations[id_]["state"] = state.value
        self._write("allocations", allocations)

    @property
    def commands(self) -> dict[str, list[str]]:
        """The submitted commands by id, in order."""
        return {id_: each["command"] for id_, each in self._read("allocations", {}).items()}

    @property
    def names(self) -> dict[str, str]:
        """The name of each allocation by id; "" is none."""
        return {id_: each.get("name", "") for id_, each in self._read("allocations", {}).items()}

    @property
    def told(self) -> list[str]:
        """The ids of submissions that have ended and printed them."""
        ids: list[str] = self._read("told", [])
        return ids

    @property
    def states(self) -> dict[str, FakeAllocationState]:
        """The state of each allocation by id."""
        return {id_: FakeAllocationState(each["state"]) for id_, each in self._read("allocations", {}).items()}

    def calls(self, verb: str) -> int:
        """Return how often a program was called."""
        count: int = self._read("calls", {}).get(verb, 0)
        return count

    def programs(self, folder: Path) -> Path:
        """Write the programs into a folder, to be put on PATH; return the folder."""
        folder.mkdir(parents=True, exist_ok=True)
        for verb in VERBS:
            path = folder / f"batch-{verb}"
            call = f"exec '{sys.executable}' '{__file__}' '{self.folder}' {verb} \"$@\""
            path.write_text(f"#!/bin/sh\n{call}\n")
            path.chmod(0o755)
        return folder

    # --- what the programs do -----------------------------------------------------------------------

    def call(self, verb: str, arguments: Sequence[str]) -> str:
        """Carry out a call of a program; return what it prints.

        Raises:
            OSError: a fault was scripted.
        """
        calls = self._read("calls", {})
        self._write("calls", {**calls, verb: calls.get(verb, 0) + 1})
        self._fail(verb)
        if verb == "submit":
            return self._submit(list(arguments))
        allocations = self._read("allocations", {})
        if verb == "find":
            found = [(each.get("name"), id_, each["state"]) for id_, each in allocations.items()]
            return "\n".join(" ".join(words) for words in found if words[0] in arguments)
        if verb == "status":
            return "\n".join(f"{id_} {allocations[id_]['state']}" for id_ in arguments if id_ in allocations)
        for id_ in arguments:
            if id_ in allocations and allocations[id_]["state"] in (
                FakeAllocationState.QUEUED,
                FakeAllocationState.RUNNING,
            ):
                allocations[id_]["state"] = FakeAllocationState.CANCELED.value
        self._write("allocations", allocations)
        return ""

    def _submit(self, arguments: list[str]) -> str:
        name = arguments.pop(0).removeprefix("--name=") if arguments[0].startswith("--name=") else ""
        allocations = self._read("allocations", {})
        self._send_signal(len(allocations), is_accepted=False)
        id_ = str(1000 + len(allocations))
        allocations[id_] = {"command": arguments, "name": name, "state": FakeAllocationState.QUEUED.value}
        self._write("allocations", allocations)
        self._send_signal(len(allocations) - 1, is_accepted=True)
        self._write("told", [*self.told, id_])
        return id_

    def _send_signal(self, before: int, *, is_accepted: bool) -> None:
        """Send the signal that is scripted for this moment of this submission."""
        order = self._read("signal", None)
        if order is None or (order["after"], order["is_accepted"]) != (before, is_accepted):
            return
        if order["number"] == signal.SIGINT:
            os.killpg(os.getpgid(order["asker"]), signal.SIGINT)
        else:
            os.kill(order["asker"], order["number"])
        time.sleep(AFTER_SIGNAL_S)

    def _fail(self, verb: str) -> None:
        """Raise the scripted fault, if there is one."""
        faults = self._read("faults", {})
        if (fault := faults.get(verb)) is None:
            return
        if fault["after"] > 0:
            fault["after"] -= 1
        elif fault["times"] > 0:
            fault["times"] -= 1
            self._write("faults", faults)
            raise OSError(fault["message"])
        self._write("faults", faults)


def main(arguments: Sequence[str]) -> int:
    """Run as one of the programs."""
    folder, verb, *rest = arguments
    try:
        said = FakeBatchSystem(Path(folder)).call(verb, rest)
    except OSError as error:
        print(error, file=sys.stderr)
        return 1
    if said:
        print(said)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
