"""The words, glyphs and colours of statuses, as the command line has them, for the page."""

from functools import cache
from typing import Any, Final

from torc_framework.models.events import EVENT_FACTS
from torc_framework.models.exits import ExitClass
from torc_framework.models.runner_states import SILENT_AFTER_S
from torc_framework.models.statuses import STATUS_FACTS, JobStatus
from torc_framework.reports.job_texts import CLASS_WORDS
from torc_framework.text.colours import CODES
from torc_framework.text.headline import WORKFLOW_LOOKS
from torc_framework.text.quantities import duration_text, size_text
from torc_framework.text.status_text import RUNNER_LOOKS, STATUS_LOOKS, StatusLook

_SECONDS: Final = (0, 0.004, 0.31, 1, 1.5, 9.96, 12.34, 59.7, 60, 75, 3599, 3600, 5400, 86_399, 86_400, 100_000, 2e6)
_BYTES: Final = (0, 1, 1023, 1024, 1536, 10_000, 1 << 20, 1_500_000, 3 << 30, 47_600_000_000, 1 << 40)


@cache
def words() -> dict[str, Any]:
    """Return the words as JSON values, with examples of durations and sizes in the words of the command line."""
    return {
        "job_statuses": {
            label: _look(look) | {"description": STATUS_FACTS[JobStatus.from_label(label)].description}
            for label, look in STATUS_LOOKS.items()
        },
        "workflow_states": {state: _look(look) for state, look in WORKFLOW_LOOKS.items()},
        "runner_states": {state: _look(look) for state, look in RUNNER_LOOKS.items()},
        "silent_after_s": SILENT_AFTER_S,
        "colours": [name for name in CODES if name],
        "exit_classes": {each.value: CLASS_WORDS.get(each, each.value.replace("_", " ")) for each in ExitClass},
        "event_types": {
            name: {"meaning": facts.meaning, "severity": facts.severity.label} for name, facts in EVENT_FACTS.items()
        },
        "durations": [[seconds, duration_text(seconds)] for seconds in _SECONDS],
        "sizes": [[size, size_text(size)] for size in _BYTES],
    }


def _look(look: StatusLook) -> dict[str, Any]:
    return {"word": look.word, "glyph": look.glyph, "colour": look.colour}
