"""The plain mode: a line for each change, for screen readers, logs and pipes."""

import time
from datetime import datetime
from typing import Final

from torc_framework.client import TorcClient
from torc_framework.errors import ServerUnreachableError
from torc_framework.models.progress import WorkflowOverview
from torc_framework.models.statuses import LIVE
from torc_framework.text.headline import WORKFLOW_LOOKS, headline_sentence
from torc_framework.text.terminal import print_line

POLL_S: Final = 2.0
"""Seconds between two looks at the server."""
MOST_WORKFLOWS: Final = 100
"""Newest workflows that are followed without an id."""


def follow_plainly(client: TorcClient, workflow_id: int | None, user: str | None) -> None:
    """Print the sentence of each workflow, and again when it changes, until nothing is under way.

    Args:
        client: The client.
        workflow_id: The workflow; None follows all of the user.
        user: Whose workflows; None is everyone's.

    Raises:
        ServerUnreachableError: no server answers at the first look; later ones wait for it.
        ApiError: there is no such workflow.
    """
    shown: dict[int, str] = {}
    is_away = False
    while True:
        try:
            found = _overviews(client, workflow_id, user)
        except ServerUnreachableError as error:
            if not shown:
                raise
            if not is_away:
                _say(f"the server is away: {error}")
            is_away = True
            time.sleep(POLL_S)
            continue
        if is_away:
            _say("the server is back")
        is_away = False
        for each in found:
            sentence = _sentence(each)
            if shown.get(each.id) != sentence:
                _say(sentence)
            shown[each.id] = sentence
        if not found:
            _say("no workflows")
        if not any(each.counts.get(status.label) for each in found for status in LIVE):
            return
        time.sleep(POLL_S)


def _overviews(client: TorcClient, workflow_id: int | None, user: str | None) -> list[WorkflowOverview]:
    if workflow_id is not None:
        return [client.progress(workflow_id).overview]
    filters = {"is_archived": False, "sort_by": "id", "reverse_sort": True}
    return client.overviews(filters | ({} if user is None else {"user": user}), limit=MOST_WORKFLOWS)[0]


def _sentence(each: WorkflowOverview) -> str:
    word = WORKFLOW_LOOKS[each.state].word
    return headline_sentence(each.workflow.name, each.id, word, each.counts, interrupted=each.interrupted)


def _say(text: str) -> None:
    print_line(f"{datetime.now().astimezone():%H:%M:%S} {text}")
