"""Errors of languages and programs, and messages that only say that something failed."""

from typing import Final

from torc_framework.models.log_errors.kinds import UNLESS_NONE, LogError, analyze_wording, parse_wording
from torc_framework.models.log_patterns import Severity

_PREFIX: Final = r"^(?:\[[^\]\n]*\]:? *|\d+: *|[\d:T.,+Z-]{8,} *)*+"
"""What ``srun -l``, ``mpirun`` and loggers write before a program's line: ranks and times."""
ERRORS: Final = (
    LogError(
        "Assertion failed",
        Severity.ERROR,
        "A condition that the program requires did not hold.",
        ("assertion .{0,200}failed", "assertion failure", "assertionerror"),
    ),
    LogError(
        "Java exception",
        Severity.ERROR,
        "The stack trace in the log names the place, and its last 'Caused by' the first cause.",
        (r'exception in thread "',),
        (_PREFIX + r"Caused by: [\w.$]+", _PREFIX + r"(?:[a-z][\w$]*\.)+[A-Z][\w$]*Exception\b"),
    ),
    LogError(
        "Python exception",
        Severity.ERROR,
        "The traceback in the log names file and line.",
        (),
        tuple(
            rf"{_PREFIX}(?:[A-Za-z_]\w*\.)*[A-Z]\w*{kind}(?::(?! *[-+]?\d*\.\d)|$)"
            for kind in ("Error", "Exception", "Exit", "Interrupt")
        ),
        (analyze_wording(11, "Python Exception", r"Traceback \(most recent call last\)|raise \w+Error", exact=True),),
    ),
    LogError(
        "Python traceback",
        Severity.ERROR,
        "The last line of the traceback names the exception.",
        (),
        (r"Traceback \(most recent call last\)",),
        (parse_wording(30, "Python traceback", r"Traceback \(most recent call last\)", exact=True),),
    ),
    LogError(
        "Timeout",
        Severity.ERROR,
        "A program waited longer than it allows; the line says for what.",
        (
            r"(?<!\d )(?<!no )\btimed out\b(?! *[=:] *\d)",
            "timeout ?expired",
            "timeouterror",
            "deadline ?exceeded",
        ),
    ),
    LogError(
        "Slurm error",
        Severity.ERROR,
        "The rest of the line is Slurm's error.",
        (
            r"\bs(?:lurmstepd|lurmd|lurmctld|run|batch|alloc|control|acct|queue|cancel)(?:-[\w.-]+)?: error:",
            r"\bs(?:lurmstepd|lurmd|lurmctld|run|batch|alloc|control|acct|queue|cancel)(?:-[\w.-]+)?: fatal:",
            "slurm_load_[a-z]+ error:",
            r"\bslurm_\w+ (?:error|failed)",
            "unable to contact slurm controller",
            "unable to create step for job",
        ),
        (),
        (
            analyze_wording(12, "Slurm Error", "slurmstepd|slurm_|cancelled|out_of_memory"),
            parse_wording(33, "Slurm step daemon error", "slurmstepd: error:"),
            parse_wording(34, "Slurm srun error", "srun: error:"),
        ),
    ),
    LogError(
        "R error",
        Severity.ERROR,
        "The rest of the line is R's message; traceback() shows the place.",
        (),
        (r"^Error in .+ : ", r"^Execution halted"),
    ),
    LogError(
        "Job failed",
        Severity.ERROR,
        "The lines of the log before this one have the cause.",
        (
            r"\b(?:job|step|task|rule|process|command|build|subprocess|prolog|epilog|launch|simulation|run)\b"
            r"[^=\n]{0,60}(?<![=\w-])(?<!\bnot )(?<!\bnever )failed(?! *[=:] *0)",
            rf"{UNLESS_NONE}(?<![=\w/-])failed(?:: (?![-+]?\d|none\b)|[!.]*\s*$)",
            r"\b[1-9]\d* failed\b(?! *[=:])",
            r"exited with (?:exit )?(?:code|status) [1-9]",
            r"(?:non-?zero|nonzero) exit (?:code|status)",
            *(rf"(?<!'){words}:? +[1-9]\d*\b" for words in ("exit code", "exit status", "return code")),
            r"(?:job_?|step_?)?state[=:] ?failed",
            "error in rule ",
            r"make(?:\[\d+\])?: \*\*\*",
        ),
        (r"(?<!\b0 )(?<![=\w-])FAILED\b(?! *[=:]? *0\b)",),
        (parse_wording(35, "Job failed", "failed"),),
    ),
    LogError(
        "Job not started",
        Severity.ERROR,
        "The rest of the line has the reason.",
        (),
        (r"\bexit_class=launch_failure\b",),
    ),
    LogError(
        "Runner warning",
        Severity.WARNING,
        "A warning of a runner that a person should check.",
        (),
        ("level=WARNING", "level=ERROR"),
    ),
    LogError(
        "Error message",
        Severity.WARNING,
        "The rest of the line is the program's message.",
        (
            *(
                rf"{_PREFIX}(?:[\w./+@-]+(?:\[\d+\])?: )?(?:[^ ]+:\d+: )?(?:fatal |internal |runtime )?"
                rf"{word}(?:\[\w+\])?: (?!none\b|null\b|false\b|nan\b|no\b|[-+]?[\d.])"
                for word in ("error", "fatal", "critical")
            ),
            r"(?<![=\w])failed to [a-z]",
            *(
                rf"(?<![=\w]){word} (?:open|read|write|create|find|load|start|connect|access)\b"
                for word in ("could not", "cannot", "unable to")
            ),
        ),
        tuple(
            rf"(?:^|[\s|\[(]){word}(?:[\s|\])]|: ?)(?!\w*[=:]? ?0\b|(?:RATE|rate|count|COUNT)\b)"
            for word in ("ERROR", "FATAL", "CRITICAL")
        ),
        (analyze_wording(13, "Generic Error", r"\b(?:error|failed|failure|exception)\b", severity=Severity.WARNING),),
    ),
)
