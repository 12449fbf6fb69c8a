"""Parser of an agent's reply: strictly formed verdicts, or no verdicts."""

import re
from collections.abc import Mapping
from typing import Annotated, Final, Literal

import msgspec

from torc_framework.api import PendingVerdict, RecoveryAction, parse_duration, parse_memory

_Text = Annotated[str, msgspec.Meta(min_length=1, max_length=2000)]
_FENCED: Final = re.compile(r"^```json\s*\n(.*?)^```\s*$", re.DOTALL | re.MULTILINE)


class AnswerError(ValueError):
    """A reply has the form of verdicts but is invalid; the message is the reason."""


class _AnsweredVerdict(msgspec.Struct, forbid_unknown_fields=True):
    job_id: int
    action: Literal["retry", "fail"]
    reason: _Text
    confidence: Annotated[float, msgspec.Meta(ge=0, le=1)]
    evidence: Annotated[list[_Text], msgspec.Meta(max_length=20)] = []
    memory: str | None = None
    runtime: str | None = None
    num_cpus: Annotated[int, msgspec.Meta(ge=1, le=100_000)] | None = None


class _AgentAnswer(msgspec.Struct, forbid_unknown_fields=True):
    verdicts: list[_AnsweredVerdict]


FORM: Final = """{"verdicts": [{"job_id": 1, "action": "retry" or "fail", "reason": "one sentence",
  "confidence": 0.0 to 1.0, "evidence": ["line of the log"]}]}"""
"""Form of a reply, for the question."""


def read_answer(text: str, attempts: Mapping[int, int], judge: str) -> dict[int, PendingVerdict]:
    """Return the verdicts of a reply by job; an empty mapping if it has none.

    Verdicts are one JSON document, or exactly one block that is marked as JSON.

    Args:
        text: The reply.
        attempts: Jobs of the question with their attempts.
        judge: Name of the agent.

    Raises:
        AnswerError: there is a document with an error; none of its verdicts is used.
    """
    blocks = _FENCED.findall(text)
    if len(blocks) > 1:
        raise AnswerError(f"{len(blocks)} documents instead of one")
    document = blocks[0] if blocks else text.strip()
    if not document.startswith("{"):
        return {}
    try:
        answer = msgspec.json.decode(document, type=_AgentAnswer)
    except (msgspec.DecodeError, RecursionError) as error:
        raise AnswerError(str(error)) from error
    found: dict[int, PendingVerdict] = {}
    for verdict in answer.verdicts:
        if verdict.job_id not in attempts:
            raise AnswerError(f"job {verdict.job_id} was not asked about")
        if verdict.job_id in found:
            raise AnswerError(f"job {verdict.job_id} has two verdicts")
        found[verdict.job_id] = _checked(verdict, judge)
    return found


def _checked(verdict: _AnsweredVerdict, judge: str) -> PendingVerdict:
    try:
        memory = None if verdict.memory is None else parse_memory(verdict.memory)
        runtime = None if verdict.runtime is None else parse_duration(verdict.runtime)
    except ValueError as error:
        raise AnswerError(f"job {verdict.job_id}: {error}") from error
    return PendingVerdict(
        RecoveryAction(verdict.action),
        verdict.reason,
        verdict.confidence,
        tuple(verdict.evidence),
        memory,
        runtime,
        verdict.num_cpus,
        judge,
        "agent",
    )
