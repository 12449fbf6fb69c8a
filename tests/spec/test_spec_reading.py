"""Files of every format, right and wrong, become data or one clear error."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torc_framework.spec import LoadOptions, SpecError, inspect, load_plan, load_spec
from torc_framework.spec.language.schema import workflow_schema
from torc_framework.spec.reading import document as reading
from torc_framework.spec.reading.read_json import parse_json, parse_json5
from torc_framework.spec.reading.read_yaml import parse_yaml

SAME = {
    "w.yaml": "name: w\njobs:\n  - name: a\n    command: run\n    depends_on: [b]\n  - {name: b, command: go}\n",
    "w.json": '{"name": "w", "jobs": [{"name": "a", "command": "run", "depends_on": ["b"]}, '
    '{"name": "b", "command": "go"}]}',
    "w.json5": "// c\n{name: 'w', jobs: [{name: 'a', command: 'run', depends_on: ['b'],}, {name: 'b', command: 'go'}]}",
    "v1.kdl": 'name "w"\njob "a" { command "run"; depends_on "b"; supports_termination false; }\n'
    'job "b" { command "go"; }',
    "v2.kdl": "name w\njob a { command run; depends_on b; supports_termination #false }\njob b command=go\n",
}


def write(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("name", SAME)
def test_the_formats_say_the_same(tmp_path: Path, name: str) -> None:
    plan = load_plan(write(tmp_path, name, SAME[name])).plan
    assert [(job.name, job.command) for job in plan.jobs] == [("a", "run"), ("b", "go")]
    assert plan.dependencies == [(0, 1)]


@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("suffix", ["", ".txt", ".torc"])
def test_without_a_known_suffix_all_formats_are_tried(tmp_path: Path, name: str, suffix: str) -> None:
    assert load_spec(write(tmp_path, f"spec{suffix}", SAME[name])).name == "w"


def test_what_is_no_format_at_all_says_why_for_each(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"in any format .*json: .*json5: .*yaml: .*kdl: "):
        load_spec(write(tmp_path, "spec", "just { words"))


def test_upper_case_suffixes_and_a_byte_order_mark_are_fine(tmp_path: Path) -> None:
    assert load_spec(write(tmp_path, "W.YAML", b"\xef\xbb\xbf" + SAME["w.yaml"].encode())).name == "w"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", "on"),
        ("yes", "yes"),
        ("true", True),
        ("4:00:00", "4:00:00"),
        ("2024-01-02", "2024-01-02"),
        ("0755", 755),
        ("0o17", 15),
        ("0x1F", 31),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("1_000", "1_000"),
        ("~", None),
        ("", None),
        ("'7'", "7"),
        ("!!str 7", "7"),
        ("!!float 7", 7.0),
        ("- ", [None]),
        ("|\n  a\n  b\n", "a\nb\n"),
        ("&x {b: &y [1], c: *y}", {"b": [1], "c": [1]}),
        ("{<<: {b: 1, c: 2}, b: 3}", {"b": 3, "c": 2}),
        ("{'<<': {b: 1}}", {"<<": {"b": 1}}),
        ("{<<: [{b: 1}, {b: 2, c: 2}]}", {"b": 1, "c": 2}),
    ],
)
def test_yaml_scalars_are_those_of_version_1_2(text: str, value: Any) -> None:
    separator = "\n" if text.startswith("-") else " "
    assert parse_yaml(f"a:{separator}{text}") == {"a": value}


def test_merged_templates_of_jobs_work(tmp_path: Path) -> None:
    text = "name: w\njobs:\n- &base {name: a, command: c, supports_termination: true}\n- {<<: *base, name: b}\n"
    jobs = load_spec(write(tmp_path, "w.yaml", text)).jobs
    assert [(job.name, job.supports_termination) for job in jobs] == [("a", True), ("b", True)]


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10)
)

# file name, content, line, column, part of the message
BROKEN: dict[str, tuple[str, str | bytes, int | None, int | None, str]] = {
    "empty": ("w.yaml", "", None, None, "the file is empty"),
    "blank": ("w.json", " \n\t", None, None, "the file is empty"),
    "yaml of comments": ("w.yaml", "# nothing\n", None, None, "nothing in the file but comments"),
    "yaml syntax": ("w.yaml", "name: w\njobs: [\n", 3, 1, "not valid YAML"),
    "yaml tab": ("w.yaml", "name: w\njobs:\n\t- a\n", 3, 1, "not valid YAML"),
    "yaml duplicate": ("w.yaml", "name: w\njobs: []\nname: v\n", 3, 1, "key 'name' is given twice"),
    "yaml duplicate merge": ("w.yaml", "a: {<<: {b: 1}, <<: {c: 1}}\n", 1, 17, "given twice"),
    "yaml tag": ("w.yaml", "name: !!python/object:os.system x\n", 1, 7, "is not known here"),
    "yaml wrong tag": ("w.yaml", "name: !!int x\n", 1, 7, "'x' is no int"),
    "yaml complex key": ("w.yaml", "? [1]\n: 2\n", 1, 3, "a key must be text"),
    "yaml alias key": ("w.yaml", "a: &x b\n*x : 2\n", 2, 1, "alias"),
    "yaml unknown alias": ("w.yaml", "a: *x\n", 1, 4, "no anchor"),
    "yaml self alias": ("w.yaml", "a: &x [*x]\n", 1, 8, "no anchor"),
    "yaml scalar merge": ("w.yaml", "a: {<<: 5}\n", 1, 9, "only mappings"),
    "yaml documents": ("w.yaml", "name: w\n---\nname: v\n", 2, 1, "second document"),
    "yaml bomb": ("w.yaml", BOMB, None, None, "aliases repeat more than"),
    "yaml depth": ("w.yaml", "a: " + "[" * 500, 1, 131, "nested too deeply"),
    "yaml depth beyond that of libyaml": ("w.yaml", "a: " + "[" * 100_000, 1, None, "nested too deeply"),
    "yaml block depth": ("w.yaml", "- " * 100_000, 1, 257, "nested too deeply"),
    "yaml control": ("w.yaml", "name: a\x01b\n", None, None, "control characters"),
    "json syntax": ("w.json", '{"name": "w",\n "jobs": [,]}', 2, 11, "not valid JSON"),
    "json comment": ("w.json", "// c\n{}", 1, 1, "a file name that ends in .json5"),
    "json duplicate": ("w.json", '{"name": "w",\n "jobs": [{"a": 1, "a": 2}]}', 2, 20, "key 'a' is given twice"),
    "json constant": ("w.json", '{"name": NaN}', None, None, "NaN is no JSON value"),
    "json depth": ("w.json", "[" * 1_000_000, None, None, "nested too deeply"),
    "json digits": ("w.json", '{"name": ' + "1" * 5000 + "}", None, None, "digits"),
    "json array": ("w.json", "[1]", 1, 1, "a list of 1; expected a mapping"),
    "json5 syntax": ("w.json5", "{\n  name: 'w',\n  jobs: }", 3, 9, "not valid JSON5"),
    "json5 unclosed": ("w.json5", "{\n  name: ['w',\n", 2, 9, "Unclosed array"),
    "json5 extra": ("w.json5", "{} /* x */\n x", 2, 2, "Extra data"),
    "json5 extra brace": ("w.json5", "{a: 1}}", 1, 7, "Extra data"),
    "json5 duplicate": ("w.json5", "{\n  name: 'w', // name:\n  'name': \"v:\"}", 3, 3, "key 'name' is given twice"),
    "json5 depth": ("w.json5", "[" * 100_000, None, None, "nested too deeply"),
    "kdl syntax": ("w.kdl", 'name "w"\njob "a" {\n  command "x\n}\n', 3, None, "not valid KDL"),
    "kdl brace": ("w.kdl", 'name "w"\n}\n', 2, 1, "not valid KDL"),
    "kdl value": ("w.kdl", 'name "w"\njob "a" {\n  command x y=\n}\n', 3, None, "not valid KDL"),
    "kdl versions": ("w.kdl", "a true\nb #true\n", None, None, "either true or #true"),
    "kdl depth": ("w.kdl", "a {\n" * 100_000, None, None, "not valid KDL"),
    "not utf-8": ("w.yaml", b"name: w\njobs: \xff\n", 2, 1, "byte 0xff is not UTF-8"),
    "utf-16": ("w.json", "{}".encode("utf-16"), 1, 1, "is not UTF-8"),
    "nul": ("w.yaml", b"name: w\na\x00b: 1\n", 2, 2, "NUL"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_cannot_be_read_is_one_error_with_its_place(tmp_path: Path, case: str) -> None:
    name, content, line, column, message = BROKEN[case]
    path = write(tmp_path, name, content)
    with pytest.raises(SpecError) as caught:
        load_plan(path)
    (finding,) = caught.value.findings
    assert message in str(finding)
    assert finding.file == str(path)
    assert line is None or finding.line == line
    assert column is None or finding.column == column
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("load", [load_plan, load_spec])
def test_deep_nesting_that_the_parser_lets_pass(tmp_path: Path, load: Callable[[Path], Any]) -> None:
    """Deeper than Python can follow when it explains what is wrong."""
    deep = "[" * 900 + "]" * 900
    with pytest.raises(SpecError, match=r"nested too deeply|expected a list"):
        load(write(tmp_path, "w.json", f'{{"name": "w", "jobs": {{"a": {deep}}}}}'))


def test_what_is_no_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="this is a directory"):
        load_plan(tmp_path)
    with pytest.raises(SpecError, match="there is no such file"):
        load_plan(tmp_path / "missing.yaml")
    with pytest.raises(SpecError, match="cannot be read"):
        load_plan(write(tmp_path, "file", "x") / "below.yaml")


def test_a_file_over_the_limit_is_not_read_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_BYTES", 1024**2)
    with pytest.raises(SpecError, match="larger than 1 MiB"):
        load_plan(write(tmp_path, "w.yaml", "#" * (1024**2 + 1)))


@pytest.mark.parametrize("suffix", ["yaml", "json", "json5", "kdl", "txt"])
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=60) | st.text("{}[]:,\"'#-/*\\ \n\tnamejobs01&<|?!@", max_size=60).map(str.encode))
def test_any_bytes_are_a_spec_or_findings(tmp_path: Path, suffix: str, content: bytes) -> None:
    """Nothing else ever comes out of reading a file."""
    path = write(tmp_path, f"w.{suffix}", content)
    seen = inspect(path)
    assert seen.plan is not None or seen.findings
    assert all(str(finding).startswith(str(path)) for finding in seen.findings)


@settings(max_examples=150, deadline=None)
@given(text=st.text("{}[]:,\"'/*\\ \n10ab", max_size=40))
def test_json5_agrees_with_json(text: str) -> None:
    """What is JSON is JSON5, of the same value."""
    from torc_framework.spec.reading.parse_problem import ParseProblem

    try:
        value = parse_json(text)
    except ParseProblem:
        return
    assert parse_json5(text) == value


def test_the_schema_refuses_unknown_keys_everywhere() -> None:
    def objects(schema: dict[str, Any]) -> Any:
        if "properties" in schema:
            yield schema
        for value in schema.values():
            for part in value.values() if isinstance(value, dict) else ():
                yield from objects(part) if isinstance(part, dict) else ()
            yield from objects(value) if isinstance(value, dict) else ()

    assert all(part["additionalProperties"] is False for part in objects(workflow_schema(LoadOptions())))
