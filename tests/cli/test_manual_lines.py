"""Command lines of Torc's manual parse: a condensed table of them, and those of the file that TORC_MANUAL names."""

import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
from command_lines import command_lines, parse_error
from typer import Context

from torc_framework.cli.programs.command_tree import root_command
from torc_framework.cli.shared.session import Session

MANUAL = os.environ.get("TORC_MANUAL")
OPTIONS: dict[str, list[str]] = tomllib.loads(Path(__file__).with_name("manual_options.toml").read_text())
NOT_BUILT = {"tui"}
"""Commands of chapters that this framework does not have."""
MISPRINTS = {
    ("torc", "--url", "--prompt-password"),
    ("torc", "alice", "workflows"),
    ("torc", "remote", "run", "workers.txt"),
}
"""Beginnings of command lines of the manual that its own program refuses: a flag is missing, or its value."""

FORMS = """\
torc --format json workflows list
torc -f json workflows is-complete "$WORKFLOW_ID" | jq -e '.is_complete' > /dev/null; then
torc --url http://127.0.0.1:8080/torc-service/v1 --username ann --prompt-password workflows list
torc run <workflow_id> /path/to/output
torc run $WORKFLOW_ID --max-parallel-jobs 10
WORKFLOW_ID=$(torc workflows create spec.yaml -f json | jq -r '.id')
torc workflows create --dry-run spec.yaml
torc workflows start "${WORKFLOW_ID}"
torc workflows initialize-jobs 1
torc workflows archive true 1 2 3
torc workflows delete 1 2 3
torc workflows import -
torc workflows execution-plan spec.yaml
torc workflows reset-status --failed --reinitialize <workflow_id>
torc workflows submit 7 --force
watch -n 10 'torc jobs list-by-status $WORKFLOW_ID'
torc jobs logs <job_id>
torc jobs list 7 -f json | jq -r '.jobs[].name' | sort
torc jobs create-from-file 7 commands.txt --cpus-per-job 4 --memory-per-job 8g
torc results get <workflow_id> --job-id <job_id>
torc results list 7 --failed
torc events list 7 -s timestamp -r
torc user-data update ${user_data.output.result_{i}} --data '{"a": 1}'
torc reports results 7 --all-runs > report.json
torc logs bundle 7
torc logs analyze wf7.tar.gz
torc submit-slurm <workflow_id>
torc submit-slurm --account mine spec.yaml
torc slurm create 7 -n=one -a=mine -e=--exclusive
torc slurm generate --account mine spec.yaml -o planned.yaml
torc slurm regenerate 7 --account mine --submit
torc hpc match lab --cpus 32 --memory 64g --walltime 2h
torc watch 7 --auto-schedule \\
--auto-schedule-threshold 10 \\ # a comment
--auto-schedule-cooldown 3600
torc recover 7 --recovery-hook 'bash fix.sh'
torc plot-resources output/resource_utilization/resource_metrics_*.db -o plots
torc access-groups add-workflow 42 1
torc remote add-workers 42 worker1.example.com alice@worker2.example.com admin@192.168.1.10:2222
torc remote remove-worker <worker> [workflow-id]
torc remote run <workflow-id> --workers workers.txt --poll-interval 5
torc remote collect-logs 42 -l ./logs --delete
torc config init --user -f
torc completions bash > ~/.local/share/bash-completion/completions/torc
sudo torc-server service install --log-dir /var/log/torc --user
torc-server run -u localhost --port 8080 --threads 4 --require-auth --auth-file users
torc-server run --daemon --log-dir logs --pid-file pid --completion-check-interval-secs 5
torc-htpasswd create users
torc-htpasswd -c users alice
torc-htpasswd ./users bob
torc-htpasswd add --cost 8 users alice
torc-htpasswd hash alice
torc-mcp-server --url http://127.0.0.1:8080/torc-service/v1
torc-dash --standalone --port 8080 --database /path/to/my.db --completion-check-interval-secs 2
torc-dash --standalone \\
--torc-bin /path/to/torc \\
--torc-server-bin /path/to/torc-server
torc-dash --api-url http://myserver:9000/torc-service/v1 --host 0.0.0.0 --server-port 0
nohup torc-dash --port 8090 > $SCRATCH/torc-dash.log 2>&1 &
"""
"""Forms in which the manual prints its command lines: placeholders, pipes, quotes, continued lines."""


def test_the_forms_parse() -> None:
    found = [*command_lines(FORMS)]
    continued = 4
    assert len(found) == len(FORMS.splitlines()) - continued
    assert [(number, words, error) for number, words in found if (error := parse_error(words))] == []


def test_a_wrong_line_does_not_parse() -> None:
    """Neither is running text a command line, nor a line that is still being typed."""
    lines = ["torc run", "torc jobs nonsense", "torc results get 1 --nonsense", "torc-server run --nonsense x"]
    assert [parse_error(words) is None for _, words in command_lines("\n".join(lines))] == [True, False, False, False]
    text = "torc runs each job.\ntorc recover: one shot\ntorc workflows <TAB>\ntorc-server instance\n"
    assert [*command_lines(text)] == []


@pytest.mark.parametrize("line", OPTIONS)
def test_the_options_are_there(line: str) -> None:
    """Under the same flags; each takes a value or does not, as in the manual."""
    command = root_command()
    context = Context(command, info_name="torc", obj=Session())
    for word in line.split()[1:]:
        command = command.resolve_command(context, [word])[1]
    known: dict[str, Any] = {flag: each for each in command.params for flag in (*each.opts, *each.secondary_opts)}
    for option in OPTIONS[line]:
        flags = option.rstrip("=").split(",")
        assert len({id(known[flag]) for flag in flags}) == 1, option
        assert bool(known[flags[0]].is_flag) is not option.endswith("="), option


@pytest.mark.skipif(MANUAL is None, reason="TORC_MANUAL names no file")
def test_the_manual_parses() -> None:
    """All that it prints, except for chapters that are not built."""
    assert MANUAL is not None
    found = [(number, words) for number, words in command_lines(Path(MANUAL).read_text())]
    built = [(number, words) for number, words in found if words[1:2] == [] or words[1] not in NOT_BUILT]
    errors = [(*line, error) for line in built if (error := parse_error(line[1]))]
    assert [line for line in errors if not any(tuple(line[1][: len(each)]) == each for each in MISPRINTS)] == []
    assert len(built) > 700, "the program finds the command lines"
