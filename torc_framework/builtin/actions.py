"""The built-in action type ``run_commands``."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from torc_framework.api import ActionContext, ActionType, TorcError, hookimpl, signal_name


def run_commands(config: Mapping[str, Any], context: ActionContext) -> None:
    """Run the commands one after the other in the output directory, each by ``bash -c``.

    Raises:
        TorcError: a command failed; those after it were not run.
    """
    environment = {**os.environ, **context.environment}
    for command in config["commands"]:
        try:
            code = subprocess.run(
                ["bash", "-c", command],
                cwd=context.output_dir,
                env=environment,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                check=False,
            ).returncode
        except OSError as error:
            raise TorcError(f"command of action run_commands could not be started: {command!r}: {error}") from error
        if code:
            how = f"ended by {signal_name(-code)}" if code < 0 else f"exit code {code}"
            raise TorcError(f"command of action run_commands failed with {how}: {command!r}")


@hookimpl(trylast=True)
def torc_action_types() -> Sequence[ActionType]:
    """Offer ``run_commands``."""
    schema = {
        "type": "object",
        "properties": {"commands": {"type": "array", "items": {"type": "string"}, "minItems": 1}},
        "required": ["commands"],
        "additionalProperties": False,
    }
    return [ActionType("run_commands", schema, run_commands)]
