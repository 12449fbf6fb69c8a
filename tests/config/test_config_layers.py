"""Settings: where they come from, who wins, and what is said about wrong ones."""

import os
from pathlib import Path
from typing import Any

import pytest
from attrs import NOTHING
from hypothesis import given
from hypothesis import strategies as st

from torc_framework.config import Config, WrongConfigError, config_files, default_database, files
from torc_framework.config.sections import Sections
from torc_framework.errors import ConfigError
from torc_framework.models.settings import setting_entries


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's configuration folder, the system's file beside it, no variables set."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(files, "SYSTEM_FILE", tmp_path / "etc.toml")
    (tmp_path / "home" / "torc").mkdir(parents=True)
    return tmp_path


def findings(environ: dict[str, str], folder: Path) -> list[str]:
    """Return what is wrong, without the folder."""
    with pytest.raises(WrongConfigError) as caught:
        Config.load(environ, folder)
    return str(caught.value).replace(f"{folder}/", "").splitlines()


def test_later_files_win_then_the_environment_then_flags(home: Path) -> None:
    """System, user, project, variables, flags; a setting in none of them has its default."""
    (home / "etc.toml").write_text(
        'client.api_url = "http://system"\nclient.run.num_cpus = 1\nclient.log_level = "info"\nserver.port = 1'
    )
    (home / "home" / "torc" / "config.toml").write_text('client.api_url = "http://user"\nclient.run.num_cpus = 2')
    (home / "torc.toml").write_text('[client]\napi_url = "http://project"\n')
    config = Config.load({}, home)
    assert config.client.api_url == "http://project"
    assert config.client.run.num_cpus == 2
    assert config.client.log_level == "info"
    assert config.client.run.num_gpus is None
    assert config.server.port == 1
    environ = {"TORC_CLIENT__RUN__NUM_CPUS": "3", "TORC_SERVER__PORT": "2"}
    assert Config.load(environ, home).client.run.num_cpus == 3
    assert Config.load(environ, home, {("server", "port"): 8080}).server.port == 8080  # a default, but a flag
    assert len(config_files(home)) == 3


def test_a_variable_names_the_user_s_file(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read in place of the usual one; the project's file still wins, and a missing file is an error."""
    (home / "home" / "torc" / "config.toml").write_text("client.run.num_cpus = 2\nclient.run.num_gpus = 2")
    named = home / "mine.toml"
    environ = {"TORC_CONFIG": str(named)}
    with pytest.raises(ConfigError, match=r"environment variable TORC_CONFIG names .*/mine.toml, which is no file"):
        Config.load(environ, home)
    named.write_text('client.run.num_cpus = 3\nclient.api_url = "http://mine"')
    (home / "torc.toml").write_text('client.api_url = "http://project"')
    config = Config.load(environ, home)
    assert (config.client.run.num_cpus, config.client.run.num_gpus) == (3, None)
    assert config.client.api_url == "http://project"
    assert config_files(home, environ) == [named, home / "torc.toml"]
    monkeypatch.setenv("HOME", str(home))
    assert Config.load({"TORC_CONFIG": "~/mine.toml"}, home).client.run.num_cpus == 3
    with pytest.raises(ConfigError, match="environment variable TORC_CONFIG: is empty; give it a value, or unset it"):
        Config.load({"TORC_CONFIG": ""}, home)
    named.write_text("client.run.cpus = 3")
    assert findings(environ, home) == [
        "mine.toml:1: client.run.cpus is not a key of the configuration; did you mean 'num_cpus'?"
    ]


def test_the_cache_of_passwords_has_a_short_variable(home: Path) -> None:
    assert Config.load({"TORC_CREDENTIAL_CACHE_TTL_SECS": "5"}, home).server.credential_cache_ttl_secs == 5.0
    with pytest.raises(WrongConfigError, match="TORC_CREDENTIAL_CACHE_TTL_SECS"):
        Config.load({"TORC_CREDENTIAL_CACHE_TTL_SECS": "soon"}, home)


def test_every_setting_knows_where_it_was_made(home: Path) -> None:
    """File, variable, flag or default."""
    (home / "torc.toml").write_text(
        "[client.run]\nnum_cpus = 4\n[client.hpc.profile_overrides.peak]\ndefault_account = 'x'"
    )
    config = Config.load({"TORC_LOG_DIR": "/logs"}, home, {("server", "port"): 1})
    origins = {leaf.key: config.origin(leaf) for leaf in config.settings()}
    assert origins["client.run.num_cpus"] == str(home / "torc.toml")
    assert origins["client.hpc.profile_overrides.peak.default_account"] == str(home / "torc.toml")
    assert origins["server.logging.log_dir"] == "environment variable TORC_LOG_DIR"
    assert origins["server.port"] == "flag"
    assert origins["server.url"] == "default"


def test_short_variables_lose_against_regular_ones(home: Path) -> None:
    """TORC_API_URL is set for jobs and by users."""
    assert Config.load({"TORC_API_URL": "http://short"}, home).client.api_url == "http://short"
    both = {"TORC_CLIENT__API_URL": "http://long", "TORC_API_URL": "http://short"}
    assert Config.load(both, home).client.api_url == "http://long"


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("TORC_API_URL", "client.api_url "),
        ("TORC_USERNAME", "client.username "),
        ("TORC_TLS_CA", "client.tls_ca "),
        ("TORC_AUTH_FILE", "server.auth_file "),
        ("TORC_CLIENT__LOG_LEVEL", "client.log_level "),
        ("TORC_CLIENT__RUN__NUM_CPUS", "client.run.num_cpus "),
        ("TORC_EXECUTOR__LOCAL__X", ""),
        ("TORC_RECOVERY__OOM__MAX_MEMORY", ""),
    ],
)
def test_an_empty_variable_is_an_error(home: Path, name: str, key: str) -> None:
    """The message names the variable; a list may be empty, and variables of other programs are left alone."""
    for text in ("", " "):
        assert findings({name: text}, home) == [
            f"environment variable {name}: {key}is empty; give it a value, or unset it"
        ]
    Config.load({"TORC_ADMIN_USERS": "", "DATABASE_URL": "", "RUST_LOG": ""}, home)


@pytest.mark.parametrize("text", ["localhost:8080", "http://", "ftp://x", "http://x:99999"])
def test_a_wrong_url_names_its_variable_or_line(home: Path, text: str) -> None:
    expected = "expected the URL of a Torc server, such as http://localhost:8080/torc-service/v1"
    assert findings({"TORC_API_URL": text}, home) == [
        f"environment variable TORC_API_URL: client.api_url is {text!r}; {expected}"
    ]
    (home / "torc.toml").write_text(f'[client]\napi_url = "{text}"\n')
    assert findings({}, home) == [f"torc.toml:2: client.api_url is {text!r}; {expected}"]


def test_variables_of_other_programs_are_taken_only_where_they_fit(home: Path) -> None:
    """RUST_LOG may hold a filter that means nothing to us."""
    assert Config.load({"RUST_LOG": "debug"}, home).server.log_level == "debug"
    assert Config.load({"RUST_LOG": "hyper=warn,debug"}, home).server.log_level == "info"


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        (
            "[client.run]\n\nnum_cpu = 3",
            "torc.toml:3: client.run.num_cpu is not a key of the configuration; did you mean 'num_cpus'?",
        ),
        ("[client.run]\nnum_cpus = 1.5", "torc.toml:2: client.run.num_cpus is 1.5; expected a whole number"),
        ("client.run.num_cpus = true", "torc.toml:1: client.run.num_cpus is True; expected a whole number"),
        ("[client]\nrun.num_cpus = 0", "torc.toml:2: client.run.num_cpus is 0; expected at least 1"),
        ("server.port = '80'", "torc.toml:1: server.port is '80'; expected a whole number"),
        ("server.port = 65536", "torc.toml:1: server.port is 65536; expected at most 65535"),
        ("[server]\nhttps = 'yes' # please", "torc.toml:2: server.https is 'yes'; expected true or false"),
        ("client.format = 'xml'", "torc.toml:1: client.format is 'xml'; expected one of table, json"),
        ("client = 1", "torc.toml:1: client is 1; expected a section"),
        ("[sever]\nport = 1", "torc.toml:1: sever is not a key of the configuration; did you mean 'server'?"),
        ("client.hpc.custom_profiles = 3", "torc.toml:1: client.hpc.custom_profiles is 3; expected a section"),
        ("client.watch.api_key = 77", "torc.toml:1: client.watch.api_key is set; expected a text"),
        ("executor = 1", "torc.toml:1: executor is 1; expected a section"),
        (
            "[[client.hpc.custom_profiles.peak.partitions]]\nname = 'a'\ncpus_per_node = 1\nmax_walltime_secs = 1",
            "torc.toml:1: client.hpc.custom_profiles.peak.partitions.0.memory_mb is missing",
        ),
        (
            "[client.hpc.custom_profiles.peak]\ndetect_env_var = 'PEAK'",
            "torc.toml:2: client.hpc.custom_profiles.peak.detect_env_var is 'PEAK'; expected NAME=value",
        ),
        (
            "[client.hpc.custom_profiles.peak]\ndetect_hostname = '*.peak'",
            "torc.toml:2: client.hpc.custom_profiles.peak.detect_hostname is '*.peak'; "
            "expected a regular expression (nothing to repeat at position 0)",
        ),
    ],
)
def test_a_wrong_key_or_value_is_told_with_its_line(home: Path, text: str, finding: str) -> None:
    """A bad value is never dropped and never taken for a default."""
    (home / "torc.toml").write_text(text)
    assert findings({}, home) == [finding]


def test_everything_that_is_wrong_is_told_at_once_and_the_rest_counts(home: Path) -> None:
    """Files and variables together."""
    (home / "torc.toml").write_text("[client.run]\nnum_cpus = 'four'\nnum_gpus = 2\nnum_gpu = 1")
    environ = {"TORC_SERVER__THREADS": "0", "TORC_CLIENT__FORMATT": "json", "TORC_XYZ__QQQQQQ": "1", "TORC_OTHER": "x"}
    assert findings(environ, home) == [
        "torc.toml:2: client.run.num_cpus is 'four'; expected a whole number",
        "torc.toml:4: client.run.num_gpu is not a key of the configuration; did you mean 'num_gpus'?",
        "environment variable TORC_SERVER__THREADS: server.threads is '0'; expected at least 1",
        "environment variable TORC_CLIENT__FORMATT: sets no key of the configuration; "
        "did you mean 'TORC_CLIENT__FORMAT'?",
        "environment variable TORC_XYZ__QQQQQQ: sets no key of the configuration; see 'torc config show'",
    ]
    config, _ = Config.examine(environ, home)
    assert (config.client.run.num_gpus, config.client.run.num_cpus) == (2, None)


@pytest.mark.parametrize("content", [b"client = ", b"\xff\xfe", b"[client\n"])
def test_a_broken_file_is_named(home: Path, content: bytes) -> None:
    """With line and column where the parser knows them."""
    (home / "torc.toml").write_bytes(content)
    with pytest.raises(ConfigError, match=r"cannot read the configuration file .*torc\.toml"):
        Config.load({}, home)


def test_clusters_of_ones_own(home: Path) -> None:
    """Profiles have names of the user's, and lists of partitions; they join over the files."""
    (home / "etc.toml").write_text(
        "[client.hpc.custom_profiles.peak]\ndescription = 'ours'\n[client.hpc.custom_profiles.low]"
    )
    (home / "torc.toml").write_text(
        "[client.hpc.custom_profiles.peak]\ndetect_env_var = 'CLUSTER=peak'\ncharge_factor_gpu = 5\n"
        "[[client.hpc.custom_profiles.peak.partitions]]\nname = 'short'\ncpus_per_node = 64\nmemory_mb = 1000\n"
        "max_walltime_secs = 3600\nshared = true\n"
    )
    profiles = Config.load({}, home).client.hpc.custom_profiles
    peak = profiles["peak"]
    assert (peak.name, peak.description, peak.detect_env_var) == ("peak", "ours", "CLUSTER=peak")
    assert (peak.charge_factor_cpu, peak.charge_factor_gpu) == (1.0, 5.0)
    assert [(part.name, part.shared, part.gpus_per_node) for part in peak.partitions] == [("short", True, 0)]
    assert profiles["low"].partitions == ()
    environ = {"TORC_CLIENT__HPC__PROFILE_OVERRIDES__KESTREL__DEFAULT_ACCOUNT": "proj"}
    assert Config.load(environ, home).client.hpc.profile_overrides["kestrel"].default_account == "proj"


OPTIONS: dict[str, type[Any]] = {"shell": str, "max_mem": int, "fast": bool}


def test_options_of_executors(home: Path) -> None:
    """Plugins declare them; a dash in a name is an underscore."""
    (home / "torc.toml").write_text("[executor.my-exec]\nshell = '/bin/zsh'\nmax-mem = 3\n")
    environ = {"TORC_EXECUTOR__MY_EXEC__FAST": "no", "TORC_EXECUTOR__MY_EXEC__MAX_MEM": "4"}
    config = Config.load(environ, home)
    assert config.plugin_options("executor", "my-exec", OPTIONS) == {"shell": "/bin/zsh", "max_mem": 4, "fast": False}
    assert config.plugin_options("executor", "other", OPTIONS) == {}
    assert config.owners("executor") == ["my_exec"]


def test_wrong_options_of_executors(home: Path) -> None:
    """Names and values are checked when the plugin that declares them is there."""
    (home / "torc.toml").write_text("[executor.local]\nshel = '/bin/zsh'\nmax_mem = '3'\n")
    config = Config.load({"TORC_EXECUTOR__LOCAL__FAST": "maybe"}, home)
    with pytest.raises(WrongConfigError) as caught:
        config.plugin_options("executor", "local", OPTIONS)
    assert str(caught.value).replace(f"{home}/", "").splitlines() == [
        "torc.toml:2: executor.local.shel is not an option of this executor; did you mean 'shell'?",
        "torc.toml:3: executor.local.max_mem is '3'; expected a whole number",
        "environment variable TORC_EXECUTOR__LOCAL__FAST: executor.local.fast is 'maybe'; expected true or false",
    ]


def test_options_of_recovery_policies(home: Path) -> None:
    """They are set like those of executors, and neither is taken for the other."""
    (home / "torc.toml").write_text(
        "[recovery.oom]\nshell = 'x'\nmax-mem = 3\n[recovery]\nother = 1\n[executor.oom]\nfast = 1\n"
    )
    config, findings = Config.examine({"TORC_RECOVERY__OOM__MAX_MEM": "5"}, home)
    assert [str(each).replace(f"{home}/", "") for each in findings] == [
        "torc.toml:5: recovery.other is 1; expected a section"
    ]
    assert config.plugin_options("recovery", "oom", OPTIONS) == {"shell": "x", "max_mem": 5}
    assert config.owners("recovery") == ["oom"]
    (home / "torc.toml").write_text("recovery = 1\n")
    assert [finding.message for finding in Config.examine({}, home)[1]] == ["is 1; expected a section"]
    with pytest.raises(WrongConfigError, match="max_men is not an option of this recovery policy; did"):
        Config.load({"TORC_RECOVERY__OOM__MAX_MEN": "5"}, None).plugin_options("recovery", "oom", OPTIONS)


def test_every_setting_is_documented_and_has_a_default_of_its_kind() -> None:
    """A default is what a file or a variable could have said."""
    keys = set()
    for leaf in setting_entries(Sections):
        assert leaf.facts.doc.endswith("."), leaf.key
        assert leaf.default is not NOTHING or "partitions" in leaf.key
        assert leaf.default is None or isinstance(leaf.default, leaf.kind if isinstance(leaf.kind, type) else tuple)
        assert leaf.key not in keys
        keys.add(leaf.key)


@given(st.dictionaries(st.sampled_from([leaf.variable for leaf in setting_entries(Sections)]), st.text(max_size=8)))
def test_whatever_the_environment_holds_there_is_a_configuration(environ: dict[str, str]) -> None:
    """Each text is a value of its kind or a finding that names the variable."""
    _, found = Config.examine({name: text.replace("\0", "") for name, text in environ.items()}, Path("/nowhere"))
    for finding in found:
        assert any(name in finding.origin for name in environ)


def test_where_the_embedded_database_lives(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In the user's data folder, unless the environment names a file."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_database({}) == tmp_path / "torc" / "torc.db"
    assert default_database({"TORC_DATABASE": "/x/y.db"}) == Path("/x/y.db")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("place", ["torc.toml", "."])
@pytest.mark.parametrize("how", ["owner", "everybody"])
def test_a_strangers_file_of_the_present_folder_is_refused(tmp_path: Path, place: str, how: str) -> None:
    """It could name the server that gets the password, and programs that run: it is not read, and that is said."""
    (tmp_path / "torc.toml").write_text("[client]\napi_url = 'http://evil'\n")
    assert Config.load({}, tmp_path).client.api_url == "http://evil"
    if how == "owner":
        os.chown(tmp_path / place, 12345, 12345)
    else:
        (tmp_path / place).chmod(0o777)
    with pytest.raises(ConfigError, match=r"torc\.toml is not read: .* (belongs to user 12345|written by everybody)"):
        Config.load({}, tmp_path)
    (tmp_path / "torc.toml").unlink()
    assert Config.load({}, tmp_path).client.api_url is None
