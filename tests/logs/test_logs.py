"""Bundles and analyses of logs: what is found, what is refused, what never happens."""

import io
import json
import os
import re
import tarfile
from pathlib import Path
from typing import Any

import pytest
from archives import unpack
from hypothesis import given
from hypothesis import strategies as st

from torc_framework.errors import UserError
from torc_framework.logs.analysis import analyze
from torc_framework.logs.bundle import bundle
from torc_framework.logs.log_names import LogName, read_name
from torc_framework.logs.pattern_scanner import PatternScanner
from torc_framework.models.log_errors import log_error_patterns
from torc_framework.models.log_patterns import LogPattern

JOB = "job_wf3_j7_r1_a2"
PATTERNS = log_error_patterns()


@pytest.fixture
def output(tmp_path: Path) -> Path:
    """An output folder as a run leaves it."""
    folder = tmp_path / "output"
    (folder / "job_stdio").mkdir(parents=True)
    (folder / "job_stdio" / f"{JOB}.e").write_text("fine\nMemoryError: Unable to allocate 8.00 GiB\n")
    (folder / "job_stdio" / f"{JOB}.o").write_text("nothing\n")
    (folder / "job_runner_host_1_wf3_r1.log").write_text("level=INFO Job started workflow_id=3\n")
    (folder / "slurm_env_wf3_sl99.log").write_text("OOM=oom-kill\nMY_TOKEN=abc\nTORC_API_URL=http://u:p@h\nA=b\n")
    (folder / "slurm_output_wf3_sl99.e").write_text("slurmstepd: error: Detected 1 oom-kill event(s) in StepId=1.0\n")
    (folder / "notes.md").write_text("Segmentation fault\n")
    return folder


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("job_wf3_j7_r1_a2.e", LogName("job", 3, 7, 1, 2)),
        ("job_wf123_j456_r1.o", LogName("job", 123, 456, 1)),
        ("job_wf3_j7_r1_a2_recovery.log", LogName("job", 3, 7, 1, 2)),
        ("job_runner_my_host-2_wf3_r4.log", LogName("runner", 3, run_id=4)),
        ("slurm_output_wf3_sl99.e", LogName("slurm", 3, slurm_job_id=99)),
        ("slurm_env_wf3_sl99.log", LogName("environment", 3, slurm_job_id=99)),
        ("dmesg_slurm_wf3_sl99.log", LogName("kernel", 3, slurm_job_id=99)),
        ("action_wf3_a5.log", LogName("action", 3)),
        ("training.log", LogName("other")),
        ("results.csv", None),
        (f"job_wf{'9' * 5000}_j1_r1.o", LogName("other")),
    ],
)
def test_names(name: str, expected: LogName | None) -> None:
    assert read_name(name) == expected


SAMPLES = [
    LogPattern("ab", re.compile("ab")),
    LogPattern("start", re.compile("^b")),
    LogPattern("end", re.compile("a$")),
    LogPattern("whole", re.compile(r"\Aa\Z")),
    LogPattern("blank", re.compile(r"b\s")),
]


@given(st.text("ab \r\n\0é", max_size=60), st.integers(8, 40))
def test_blocks_find_what_lines_hold(text: str, block_bytes: int) -> None:
    """Wherever blocks begin, the same lines are found, by the same patterns, as line by line."""
    lines = text.split("\n")
    if any(len(line.encode()) >= block_bytes for line in lines):
        return
    expected = []
    for number, line in enumerate(lines, 1):
        texts = line.rstrip("\r").split("\r")
        kinds = [p.name for p in SAMPLES if any(text and p.pattern.search(text) for text in texts)]
        expected += [(number, kind) for kind in kinds[:1]]
    hits = PatternScanner(SAMPLES, block_bytes).hits(io.BytesIO(text.encode()))
    assert [(hit.line, hit.pattern.name) for hit in hits] == expected


@given(st.binary(max_size=200), st.integers(1, 40))
def test_any_bytes_are_read(content: bytes, block_bytes: int) -> None:
    """No content stops the scan or spoils the numbers of lines."""
    needle = b"\nCUDA out of memory\n"
    hits = list(PatternScanner(PATTERNS, max(block_bytes, 20)).hits(io.BytesIO(content + needle)))
    assert (hits[-1].line, hits[-1].pattern.name) == (content.count(b"\n") + 2, "GPU out of memory")


def test_a_line_without_end_is_cut() -> None:
    """It fills no memory, and the lines behind it have their numbers."""
    log = io.BytesIO(b"x" * 5_000_000 + b"\nKilled\n")
    assert [hit.line for hit in PatternScanner(PATTERNS).hits(log)] == [2]


def test_control_characters_of_logs_do_not_reach_the_terminal() -> None:
    (hit,) = PatternScanner(PATTERNS).hits(io.BytesIO(b"\x1b[31mPermission denied\x1b[0m\xff\x07\r\n"))
    assert hit.text == "Permission denied\ufffd\\x07"


def test_an_analysis_names_file_line_job_and_attempt(output: Path) -> None:
    """Files of settings and files that are no logs are left out."""
    found = analyze(output, PATTERNS)
    (oom, memory) = sorted(found.as_dict()["errors"], key=lambda error: error["type"])
    assert (oom["type"], oom["slurm_job_id"], oom["line"]) == ("Out of memory (OOM) kill", 99, 1)
    assert memory["file"].endswith(f"{JOB}.e")
    assert (memory["line"], memory["job_id"], memory["attempt_id"], memory["severity"]) == (2, 7, 2, "critical")
    assert (found.workflow_id, found.files_scanned, found.files_with_errors) == (3, 4, 2)


def test_lines_of_a_runner_name_the_job(output: Path) -> None:
    """A job without its output file leaves an error in the runner's log only."""
    (output / "job_runner_host_1_wf3_r1.log").write_text(
        "level=INFO Job started workflow_id=3 job_id=9 attempt_id=2\n"
        "level=INFO Job completed workflow_id=3 run_id=1 job_id=9 attempt_id=2 status=failed exit_class=output_missing "
        "reason='output missing: out.csv'\n"
        "level=WARNING server cannot be reached workflow_id=3\n"
    )
    errors = [each for each in analyze(output, PATTERNS).as_dict()["errors"] if each["file"].endswith("_r1.log")]
    found = [(each["type"], each["line"], each["job_id"], each["attempt_id"], each["run_id"]) for each in errors]
    assert found == [("Output files missing", 2, 9, 2, 1), ("Runner warning", 3, None, None, 1)]


def test_many_alike_are_counted(output: Path) -> None:
    (output / "job_stdio" / f"{JOB}.o").write_text("Connection refused\n" * 1000)
    found = analyze(output, PATTERNS, job_id=7)
    assert found.counts["Connection refused"] == 1000
    shown = [finding for finding in found.findings if finding.hit.pattern.name == "Connection refused"]
    assert (len(shown), shown[0].more) == (10, 990)


def test_logs_of_several_workflows_are_not_mixed(output: Path) -> None:
    (output / "job_stdio" / "job_wf4_j1_r1_a1.e").write_text("Killed\n")
    with pytest.raises(UserError, match=r"several workflows, such as 3 and 4; name one with --workflow-id"):
        analyze(output, PATTERNS)
    assert dict(analyze(output, PATTERNS, workflow_id=4).counts) == {"Killed": 1}
    assert bundle(output, output / "x.tar.gz", workflow_id=4).files == 1


def test_pipes_and_links_to_folders_do_not_hold_an_analysis_up(output: Path) -> None:
    os.mkfifo(output / "pipe.log")
    (output / "again").symlink_to(output)
    assert analyze(output, PATTERNS).files_scanned == 4


# --- bundles --------------------------------------------------------------------------------------


def test_a_bundle_is_analyzed_like_its_folder(output: Path, tmp_path: Path) -> None:
    made = bundle(output, tmp_path, facts={"torc_version": "1"})
    assert (made.path, made.workflow_id, made.files) == (str(tmp_path / "wf3.tar.gz"), 3, 5)
    kinds = analyze(output, PATTERNS).counts
    assert analyze(Path(made.path), PATTERNS).counts == kinds
    unpack(Path(made.path), tmp_path / "there")
    assert analyze(tmp_path / "there" / "wf3", PATTERNS).counts == kinds
    metadata = json.loads((tmp_path / "there" / "wf3" / "bundle_metadata.json").read_text())
    assert (metadata["workflow_ids"], metadata["torc_version"]) == ([3], "1")


NAMED = {"workflow": {"id": 3, "name": "sweep \x1b[1m"}}


@pytest.mark.parametrize(
    ("metadata", "name"),
    [
        (b'{"workflow_id": 3, "workflow_name": "sweep"}', "sweep"),
        (b'{"workflow": {"id": 3, "name": "sweep"}}', "sweep"),
        (b'{"workflow": {"id": 4, "name": "other"}}', None),
        (b'{"workflow_id": 3, "workflow_name": ["sweep"]}', None),
        (b"[3]", None),
        (b"{" * 5000, None),
        (b"[" * 100_000, None),
        (b'{"workflow_id": 3, "workflow_name": "' + b"x" * (1 << 20) + b'"}', None),
    ],
)
def test_metadata_name_the_workflow(tmp_path: Path, metadata: bytes, name: str | None) -> None:
    """Bundles of Torc have the metadata at the end; damaged metadata cost the name only."""
    entries = [("output/job_wf3_j1_r1_a1.e", b"Killed\n"), ("bundle_metadata.json", metadata)]
    for order in (entries, entries[::-1]):
        made = archive_of(tmp_path / "x.tar.gz", *((path, tarfile.REGTYPE, content) for path, content in order))
        found = analyze(made, PATTERNS)
        assert (found.workflow_id, found.workflow_name, found.files_scanned) == (3, name, 1)
        assert found.as_dict()["workflow_name"] == name


def test_a_bundle_names_its_workflow(output: Path, tmp_path: Path) -> None:
    """Also after it was unpacked, and if no log has the workflow in its name; without control characters."""
    made = Path(bundle(output, tmp_path, facts=NAMED).path)
    assert analyze(made, PATTERNS).workflow_name == "sweep \\x1b[1m"
    unpack(made, tmp_path / "there")
    found = analyze(tmp_path / "there", PATTERNS, job_id=7)
    assert (found.workflow_id, found.workflow_name) == (3, "sweep \\x1b[1m")
    assert analyze(output, PATTERNS).workflow_name is None
    metadata = json.dumps({"workflow_id": 9, "workflow_name": "w"}).encode()
    plain = archive_of(
        tmp_path / "y.tar.gz",
        ("bundle_metadata.json", tarfile.REGTYPE, metadata),
        ("training.log", tarfile.REGTYPE, b"Killed\n"),
    )
    assert (analyze(plain, PATTERNS).workflow_id, analyze(plain, PATTERNS).workflow_name) == (9, "w")


def test_a_bundle_hides_secrets_of_the_environment(output: Path, tmp_path: Path) -> None:
    with tarfile.open(bundle(output, tmp_path).path) as archive:
        log = archive.extractfile("wf3/slurm_env_wf3_sl99.log")
        assert log is not None
        assert log.read() == b"OOM=oom-kill\nMY_TOKEN=(hidden)\nTORC_API_URL=(hidden)\nA=b\n"


def test_nothing_to_bundle_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there are no logs of workflow 9 in"):
        bundle(tmp_path, tmp_path / "x.tar.gz", workflow_id=9)
    with pytest.raises(UserError, match="there is no folder"):
        bundle(tmp_path / "none", None)
    assert list(tmp_path.iterdir()) == []


def archive_of(path: Path, *entries: tuple[str, bytes, Any]) -> Path:
    """Write a tarball with these names, types and contents."""
    with tarfile.open(path, "w:gz") as archive:
        for name, kind, content in entries:
            entry = tarfile.TarInfo(name)
            entry.type = kind
            if isinstance(content, bytes):
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
            else:
                entry.linkname = content or ""
                archive.addfile(entry)
    return path


def test_entries_that_lead_elsewhere_are_passed_over(tmp_path: Path) -> None:
    """Nothing of a stranger's bundle is written or followed; what was left out is said."""
    secret = tmp_path / "secret.log"
    secret.write_text("Killed\n")
    made = archive_of(
        tmp_path / "evil.tar.gz",
        ("../../outside.log", tarfile.REGTYPE, b"Killed\n"),
        ("/absolute.log", tarfile.REGTYPE, b"Killed\n"),
        ("link.log", tarfile.SYMTYPE, str(secret)),
        ("hard.log", tarfile.LNKTYPE, str(secret)),
        ("device.log", tarfile.CHRTYPE, None),
        ("pipe.log", tarfile.FIFOTYPE, None),
        ("wf3/job_wf3_j7_r1_a1.e", tarfile.REGTYPE, b"Killed\n"),
    )
    before = sorted(tmp_path.rglob("*"))
    found = analyze(made, PATTERNS)
    assert (found.files_scanned, dict(found.counts)) == (1, {"Killed": 1})
    assert [name for name, _ in found.skipped] == [
        "../../outside.log",
        "/absolute.log",
        "link.log",
        "hard.log",
        "device.log",
        "pipe.log",
    ]
    assert sorted(tmp_path.rglob("*")) == before


def test_a_bundle_that_unfolds_to_too_much_is_refused(tmp_path: Path) -> None:
    made = archive_of(tmp_path / "bomb.tar.gz", ("wf3/job_wf3_j1_r1_a1.o", tarfile.REGTYPE, bytes(2_000_000)))
    assert made.stat().st_size < 10_000
    with pytest.raises(UserError, match="unfolds to more than 1,000,000 bytes"):
        analyze(made, PATTERNS, max_bytes=1_000_000)


def test_a_header_that_would_fill_the_memory_is_refused(tmp_path: Path) -> None:
    made = archive_of(tmp_path / "header.tar.gz", ("x", tarfile.GNUTYPE_LONGNAME, b"x" * 1_000_000))
    with pytest.raises(UserError, match="no bundle, or it is damaged: an entry has a header of 1,000,000 bytes"):
        analyze(made, PATTERNS)


@pytest.mark.parametrize("content", [b"", b"no tarball", b"\x1f\x8b\x08\x00garbage"])
def test_what_is_no_bundle_is_said_to_be_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.tar.gz").write_bytes(content)
    with pytest.raises(UserError, match=r"is no bundle, or it is damaged|holds no logs"):
        analyze(tmp_path / "x.tar.gz", PATTERNS)


def test_a_damaged_bundle_is_said_to_be_damaged(output: Path, tmp_path: Path) -> None:
    (output / "big.log").write_bytes(os.urandom(300_000))
    (output / "job_stdio" / f"{JOB}.o").write_bytes(os.urandom(300_000))
    made = Path(bundle(output, tmp_path).path)
    made.write_bytes(made.read_bytes()[:100_000])
    with pytest.raises(UserError, match="is no bundle, or it is damaged"):
        analyze(made, PATTERNS)


def test_a_bundle_follows_no_links(output: Path, tmp_path: Path) -> None:
    """What a job put in the place of a log may lead to a key: neither links nor pipes are opened, and that is said."""
    secret, private = tmp_path / "secret", tmp_path / "private"
    secret.write_text("KEY Segmentation fault\n")
    private.mkdir()
    (private / "job_wf3_j9_r1.o").write_text("KEY Segmentation fault\n")
    (output / "job_stdio" / "job_wf3_j8_r1.e").symlink_to(secret)
    (output / "slurm_env_wf3_sl98.log").symlink_to(secret)
    (output / "gone.log").symlink_to("/nosuch")
    (output / "results.csv").symlink_to(secret)
    (output / "deeper").symlink_to(private)
    os.mkfifo(output / "job_stdio" / "job_wf3_j8_r1.o")
    made = bundle(output, tmp_path)
    with tarfile.open(made.path) as archive:
        entries = archive.getmembers()
        content = b"".join(file.read() for entry in entries if (file := archive.extractfile(entry)) is not None)
    assert b"KEY" not in content
    assert all(entry.isreg() and entry.name.startswith("wf3/") and ".." not in entry.name for entry in entries)
    assert made.files == len(entries) - 1
    skipped = {(Path(each.file).name, each.reason) for each in made.skipped}
    pipe = "a device, a pipe or something else that is no file"
    links = {"job_wf3_j8_r1.e", "slurm_env_wf3_sl98.log", "gone.log"}
    assert skipped == {("job_wf3_j8_r1.o", pipe), *((name, "a link") for name in links)}
    found = analyze(output, PATTERNS)
    assert not any("KEY" in finding.hit.text for finding in found.findings)
    assert len(found.skipped) == 4


# --- the commands ---------------------------------------------------------------------------------


@pytest.mark.e2e
def test_a_run_is_bundled_and_analyzed(torc: Any, server: str, work: Path) -> None:
    """From a failed run to the hint, with a pattern of the project's own; the runner's log answers to grep."""
    (work / "w.yaml").write_text("name: w\njobs:\n  - {name: bad, command: 'echo FROBNICATED; cat nosuch; exit 3'}\n")
    env = {"TORC_API_URL": server}
    wid = json.loads(torc("run", "w.yaml", "-f", "json", env=env).stdout)["workflow_id"]
    (work / "torc_plugins").mkdir()
    (work / "torc_plugins" / "mine.py").write_text(
        "import re\nfrom torc_framework.api import LogPattern, hookimpl\n"
        "@hookimpl\ndef torc_log_patterns():\n    return [LogPattern('Frob', re.compile('FROB'), hint='Frob less.')]\n"
    )
    assert torc("plugins", "trust").returncode == 0
    done = torc("logs", "bundle", wid, "-o", "b.tar.gz", "-f", "json", env=env)
    assert json.loads(done.stdout)["files"] == 3, done.stderr
    found = json.loads(torc("logs", "analyze", "b.tar.gz", "-f", "json").stdout)
    assert found["error_types"] == {"File not found": 1, "Frob": 1}
    assert (found["workflow_id"], found["workflow_name"]) == (wid, "w")
    assert f"Workflow: {wid} (w)\n" in torc("logs", "analyze", "b.tar.gz").stdout
    text = torc("logs", "analyze", "output").stdout
    assert "Line 1: FROBNICATED" in text
    assert "Frob: Frob less." in text
    (log,) = (work / "output").glob("job_runner_*.log")
    lines = log.read_text().splitlines()
    assert any(re.search(f"Job started workflow_id={wid} .*job_id=.*attempt_id=1", line) for line in lines)
    assert any(f"Job completed workflow_id={wid} " in line and "status=failed" in line for line in lines)
    assert any("Job process completed" in line and "return_code=3" in line for line in lines)
    assert all("run_id=1" in line and "compute_node_id=" in line for line in lines)
    missing = torc("logs", "bundle", wid, "--output-dir", "elsewhere", env=env)
    assert (missing.returncode, missing.stderr.count("\n")) == (2, 1)
    assert "there is no folder elsewhere" in missing.stderr
