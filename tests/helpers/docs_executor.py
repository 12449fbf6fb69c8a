"""What the planted defects of executors begin with: the executor of the docs, and its suite."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from attrs import evolve
from doc_pages import executor_of_the_docs

from torc_framework.api import (
    AttemptEnded,
    ExitObservation,
    Launcher,
)
from torc_framework.testing import ExecutorContract

if TYPE_CHECKING:

    class Nice(Launcher):
        """What the docs' executor has, which mypy cannot read."""

        live: dict[Any, Any]
        events: list[Any]

        def poll(self) -> list[Any]: ...
        def spawn(self, attempt: Any) -> Any: ...
        def start(self, attempts: Sequence[Any]) -> None: ...
        def stop(self, keys: Any, *, force: bool) -> None: ...

else:
    Nice = executor_of_the_docs()


def observing(change: Callable[[ExitObservation], dict[str, Any]]) -> type[Nice]:
    """Return an executor whose observations are changed."""

    class Changed(Nice):
        def poll(self) -> list[Any]:
            return [
                evolve(event, observation=evolve(event.observation, **change(event.observation)))
                if isinstance(event, AttemptEnded)
                else event
                for event in super().poll()
            ]

    return Changed


class Suite(ExecutorContract):
    patience_s = 4.0
