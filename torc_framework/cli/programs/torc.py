"""The program ``torc``. It answers ``--version`` itself, before any other module is imported."""

import sys

from torc_framework import __version__

_INTERRUPTED = 130
"""`ExitStatus.INTERRUPTED`, whose module is not imported yet."""


def main(argv: "list[str] | tuple[str, ...] | None" = None) -> int:
    """Run ``torc`` with these arguments; return the exit code of the process."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments in (["--version"], ["-V"]):
        print(f"torc {__version__}")
        return 0
    is_process = argv is None
    try:
        from torc_framework.cli.programs.early_start import start_early

        early = start_early(arguments) if is_process else None
        from torc_framework.cli.programs.program import run_program
    except KeyboardInterrupt:  # a server that was started early ends with this process
        return _INTERRUPTED
    return run_program(arguments, is_process=is_process, early=early)


if __name__ == "__main__":
    sys.exit(main())
