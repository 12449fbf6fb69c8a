"""Options that a workflow sets for all its schedulers (``slurm_defaults``)."""

import json
from typing import Any


def option_name(written: str) -> str:
    """Return the name of an option as the batch system has it: ``MAIL_TYPE`` and ``--mail-type`` are ``mail-type``."""
    return written.lower().replace("_", "-").lstrip("-")


def scheduler_defaults(text: str | None) -> dict[str, Any]:
    """Return the options in a workflow record's ``slurm_defaults``; what is no JSON object counts as no options."""
    try:
        defaults = json.loads(text or "{}")
    except ValueError:
        return {}
    return {option_name(str(name)): value for name, value in defaults.items()} if isinstance(defaults, dict) else {}
