"""Errors about files, disks, networks and what is to be started."""

from typing import Final

from torc_framework.models.log_errors.kinds import LogError, analyze_wording, parse_wording
from torc_framework.models.log_patterns import Severity

ERRORS: Final = (
    LogError(
        "Output files missing",
        Severity.ERROR,
        "The job ended well but did not write a file that it declares; check the path and the job's working folder.",
        (
            "expected output files? (?:is|are) missing",
            "output file validation failed",
            "missingoutputexception",
            "missing output file",
            "output files? (?:is|are) missing",
        ),
        (r"\bexit_class=output_missing\b",),
        (
            analyze_wording(
                2, "Missing Output Files", "expected output files are missing|output file validation failed"
            ),
        ),
    ),
    LogError(
        "Disk full",
        Severity.CRITICAL,
        "Free space, or write to another file system.",
        (
            "no space left",
            "not enough space on",
            "there is not enough (?:disk )?space",
            "not enough (?:free )?disk space",
            "insufficient disk space",
            "disk (?:is )?full",
            "filesystem (?:is )?full",
            r"\benospc\b",
        ),
        (),
        (
            analyze_wording(8, "Disk Full", "no space left|disk full|quota exceeded|enospc"),
            parse_wording(16, "Disk full", "no space left on device"),
        ),
    ),
    LogError(
        "Quota exceeded",
        Severity.CRITICAL,
        "Free space within your quota, or ask for a larger one.",
        ("quota exceeded", "exceeded .{0,20}quota", r"\bedquot\b"),
        (),
        (parse_wording(17, "Disk quota exceeded", "disk quota exceeded"),),
    ),
    LogError(
        "File system error",
        Severity.CRITICAL,
        "Tell the cluster's support if it occurs again.",
        (
            "read-only file ?system",
            "stale (?:nfs )?file handle",
            "input/output error",
            "transport endpoint is not connected",
            "cannot send after transport endpoint shutdown",
            "structure needs cleaning",
            r"\berofs\b",
            r"\bestale\b",
            "lustreerror:",
            r"i/o error, dev \w",
        ),
        (),
        (parse_wording(18, "Read-only file system", "read-only file system"),),
    ),
    LogError(
        "Permission denied",
        Severity.ERROR,
        "Check the owner and mode of the file, and the user of the job.",
        ("permission denied", "access denied", "access is denied", "operation not permitted", r"\beacces\b"),
        ("PermissionError", r"\bEPERM\b"),
        (
            analyze_wording(6, "Permission Denied", "permission denied|access denied|eacces"),
            parse_wording(31, "Permission denied", "permission denied"),
        ),
    ),
    LogError(
        "Too many open files",
        Severity.ERROR,
        "Close files, or raise 'ulimit -n'.",
        ("too many open files", r"\bemfile\b"),
    ),
    LogError(
        "Connection refused",
        Severity.ERROR,
        "No process listens there: check that the other side runs, and check host and port.",
        ("connection refused", "connectionrefusederror", r"\beconnrefused\b", "failed to connect to"),
        (),
        (
            analyze_wording(
                9, "Connection Error", "connection refused|connection reset|network unreachable|econnrefused"
            ),
            parse_wording(19, "Connection refused", "connection refused"),
        ),
    ),
    LogError(
        "Connection lost",
        Severity.ERROR,
        "The network or the other side failed.",
        (
            "connection timed out",
            "connect(?:ion)? timeout",
            "connection reset",
            "connection aborted",
            "connection closed by",
            "network (?:is )?unreachable",
            "no route to host",
            "broken pipe",
            "remote end closed connection",
            "max retries exceeded with url",
            r"\betimedout\b",
            r"\beconnreset\b",
        ),
        (),
        (
            parse_wording(20, "Connection timed out", "connection timed out"),
            parse_wording(21, "Network unreachable", "network is unreachable"),
        ),
    ),
    LogError(
        "Host name not known",
        Severity.ERROR,
        "Check the spelling of the host and the node's name service.",
        (
            "name or service not known",
            "could not resolve host",
            "temporary failure in name resolution",
            "unknown host",
            "unknownhostexception",
            "nodename nor servname provided",
        ),
    ),
    LogError(
        "Missing Python module",
        Severity.ERROR,
        "Install it in the environment that the job uses, or activate that environment in the job.",
        ("no module named ",),
        ("ModuleNotFoundError", "ImportError"),
        (
            parse_wording(28, "Python module not found", "ModuleNotFoundError", exact=True),
            parse_wording(29, "Python import error", "ImportError", exact=True),
        ),
    ),
    LogError(
        "Missing library",
        Severity.ERROR,
        "Load the module or set LD_LIBRARY_PATH in the job.",
        (
            "error while loading shared libraries",
            "cannot open shared object file",
            "version `glibc",
            "undefined symbol:",
            "symbol lookup error",
        ),
    ),
    LogError(
        "Missing R package",
        Severity.ERROR,
        "Install it in the library that the job uses.",
        ("there is no package called", "package or namespace load failed"),
    ),
    LogError(
        "Environment module not found",
        Severity.ERROR,
        "'module avail' lists the modules.",
        (
            "lmod has detected the following error",
            "unable to locate a modulefile",
            r"modulecmd\.tcl: error",
            "module: command not found",
        ),
    ),
    LogError(
        "Conda error",
        Severity.ERROR,
        "Check the name of the environment and that conda is initialized in the job's shell.",
        (
            r"\bconda\w*error\b",
            "resolvepackagenotfound",
            "packagesnotfounderror",
            "unsatisfiableerror",
            "environmentlocationnotfound",
            "environmentnamenotfound",
            "commandnotfounderror",
            "could not find conda environment",
        ),
    ),
    LogError(
        "Python package not found",
        Severity.ERROR,
        "Check the package's name and version, and the Python version of the environment.",
        ("no matching distribution found", "could not find a version that satisfies"),
    ),
    LogError(
        "Command not found",
        Severity.ERROR,
        "Check PATH in the job, and the spelling.",
        ("command not found", "executable file not found", "is not recognized as an internal"),
        (r"sh: (?:line )?\d+: .{0,200}: not found", r"\bsh: [\w./+-]+: not found"),
    ),
    LogError(
        "File not found",
        Severity.ERROR,
        "Check the path, the job's working folder and the job that should have written the file.",
        (
            "no such file",
            "filenotfound(?:error|exception)",
            r"(?<!no )\bfile not found",
            "file does not exist",
            "nosuchfileexception",
            r"\benoent\b",
        ),
        (),
        (analyze_wording(7, "File Not Found", "no such file|file not found|enoent"),),
    ),
    LogError(
        "License error",
        Severity.ERROR,
        "No license was free, or the license server does not answer.",
        (
            "flexnet licensing error",
            "license checkout failed",
            "licensed number of users already reached",
            "failed to check out a license",
            "no license(?:s)? available",
        ),
    ),
)
