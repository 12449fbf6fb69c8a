"""A ``torc-server`` that imports its modules before it reads its arguments from its standard input.

``torc run`` starts it as the first thing it does (`torc_framework.cli.programs.early_start`). At the end of that input
without arguments, when the command has ended or needs no server of its own, it exits.
"""

import json
import os
import sys

from torc_framework.cli.programs import torc_server
from torc_framework.errors import ExitStatus


def main() -> int:
    """Import, read, and run the server; return the exit code of the process."""
    from torc_framework.server.process.serve import import_application

    import_application()
    text = sys.stdin.buffer.read()
    if not text:
        return ExitStatus.OK
    given = json.loads(text)
    os.environ.update(given["environment"])
    return torc_server.main(given["arguments"])


if __name__ == "__main__":
    sys.exit(main())
