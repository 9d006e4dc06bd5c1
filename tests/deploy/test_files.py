"""The shipped files: drawn from the code, decoded by it, and each process with its own password alone."""

import configparser
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from trunkline.acl.accounts import accounts_config, password_variable
from trunkline.acl.roles import all_roles
from trunkline.cli.checks.bus_checks import server_binary
from trunkline.config import load_config
from trunkline.contracts import subjects
from trunkline.runtime.connection_settings import bus_settings
from trunkline.runtime.remotes.nkeys import new_key
from trunkline.runtime.remotes.registry import Remote, RemoteRegistry
from trunkline.testing.platform import clean_environ
from trunkline_bus import Endpoint, Topic

from .installation import CHANNEL, DELEGATIONS, ROOT, SHIPPED, USERS

DEPLOY = ROOT / "deploy"
COMMANDS = ("operator", "delegate-external")
"""The users of a person's commands: nothing runs all the time under them."""

KINDS = {user: "channels" if user.startswith("channel-") else user for user in USERS if user not in COMMANDS}


def test_the_accounts_are_drawn_from_the_roles() -> None:
    """``deploy/nats/accounts.conf`` is the module's output without a named channel."""
    argv = [sys.executable, "-m", "trunkline.acl", "--delegate", "external=main"]
    printed = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    assert printed == (DEPLOY / "nats/accounts.conf").read_text()


def test_a_shipped_file_names_no_channel_that_is_not_shipped() -> None:
    """A user, password or service for a channel is in the templates alone; they and the guide name it as an example."""
    templates = {"compose.channel.yaml", "channel.yaml", "trunkline-channel@.service", "README.md"}
    for file in (one for one in DEPLOY.rglob("*") if one.is_file() and one.name not in templates):
        assert re.findall(r"channel-\w+|CHANNEL_[A-Z]+", file.read_text()) == [], file


def test_every_subject_has_its_role() -> None:
    """A new subject in the subject table needs roles: one role serves an endpoint, others call it."""
    everybody = all_roles((CHANNEL,), ("laptop",), ("weather",), DELEGATIONS)
    for endpoint in (one for one in vars(subjects).values() if isinstance(one, Endpoint)):
        assert sum(endpoint in role.serves for role in everybody) == 1, endpoint.name
        assert any(endpoint in role.calls for role in everybody), endpoint.name
    for topic in (one for one in vars(subjects).values() if isinstance(one, Topic)):
        common = topic in (subjects.SPANS, subjects.DEAD_LETTER_TOPIC)  # every worker's
        common |= topic in (
            subjects.APPROVAL_DUE,
            subjects.TASK_DUE,
        )  # the server's own, by a message schedule
        assert common or any(topic in role.publishes for role in everybody), topic.name


def test_no_grant_is_a_whole_plane() -> None:
    """No user may write to all of JetStream, acknowledge for all consumers, or read all users' replies."""
    subjects = re.findall(r'^ +"(.+)"$', (DEPLOY / "nats/accounts.conf").read_text(), re.MULTILINE)
    assert len(subjects) > 200
    for subject in subjects:
        whole, _, rest = subject.rpartition(".>")
        assert rest == "" or ">" not in subject
        if whole:
            facts = r"FACTS\.(?:learner|compaction|agents|scheduled-turns)"
            acks = rf"\$JS\.ACK\.(INBOX\.\*|{facts}|SCHEDULES\.schedules|TIMERS\.(?:task-)?deadlines)"
            own = r"\$KV\.channels\.[a-z]+"  # the records of one channel
            assert re.fullmatch(rf"_INBOX_[a-z-]+|{acks}|{own}|\$SRV\.[A-Z]+", whole), subject
        if subject.startswith("$JS.API."):
            inbox = subject.replace(".INBOX.*", ".INBOX.N").removesuffix(".*")
            named = (
                "INBOX.*.trunkline.turn.part.",
                "FACTS.learner.trunkline.evt.turn.*.finished",
                "FACTS.compaction.trunkline.evt.turn.*.finished",
                "FACTS.agents.trunkline.evt.turn.*.finished",
                "FACTS.scheduled-turns.trunkline.evt.turn.*.finished",
                "SCHEDULES.schedules.trunkline.schedule.due.",
                "TIMERS.task-deadlines.trunkline.",
                "TIMERS.deadlines.trunkline.turn.due.",
            )
            made = tuple(f"$JS.API.CONSUMER.CREATE.{consumer}" for consumer in named)
            assert "*" not in inbox or subject.startswith(made)


@pytest.mark.parametrize("names", [("Mail",), ("a b",), ("a.b",), (">",), ("cli",), ("mail", "mail"), ("",)])
def test_a_name_that_would_widen_a_grant_is_refused(names: tuple[str, ...]) -> None:
    """A channel's name becomes part of subjects and of a variable's name, so it is checked."""
    with pytest.raises(ValueError, match="cannot be the user of a channel"):
        accounts_config(names)


@pytest.mark.parametrize(
    "delegations", [{"Claude": ("main",)}, {"a.b": ("main",)}, {"claude": ("*",)}, {"claude": ("",)}]
)
def test_a_delegation_is_bound_to_the_names_of_block_and_agent(
    delegations: dict[str, tuple[str, ...]],
) -> None:
    """Both become parts of subjects."""
    with pytest.raises(ValueError, match=r"is not the name of a block|cannot be the user of"):
        accounts_config((CHANNEL,), delegations=delegations)


@pytest.mark.parametrize("commented", ["as it is", "with what is commented out"])
def test_the_shipped_settings_are_valid(tmp_path: Path, commented: str) -> None:
    """Every key of ``trunkline.toml`` exists and is valid, also the commented ones; the user is in the environment."""
    text = (DEPLOY / "trunkline.toml").read_text()
    if commented != "as it is":
        text = re.sub(r"^# (?=\[|\w+ = )", "", text, flags=re.MULTILINE)
        assert tomllib.loads(text)["adapters"]["openai"]["api_key"] == {"env": "OPENAI_API_KEY"}
    (tmp_path / "trunkline.toml").write_text(text)
    environ = {"TRUNKLINE_BUS__USER": "tools", "TRUNKLINE_BUS__PASSWORD": "secret"}
    config = load_config(tmp_path, environ=environ)
    settings = bus_settings(config)
    assert (settings.user, settings.password, settings.inbox_prefix) == ("tools", "secret", "_INBOX_tools")
    assert config.settings.bus.manage_streams is False


def test_a_remote_is_a_user_with_a_key_and_its_own_subjects(tmp_path: Path) -> None:
    """``trunkline remote accounts`` adds the remotes of the home, and the server understands it."""
    home, key = tmp_path / "home", new_key()[1]
    RemoteRegistry(home / "remotes").add(
        Remote(name="laptop", key=key, blocks=("main",), enrolled_at=datetime.now(UTC))
    )
    argv = [sys.executable, "-m", "trunkline.cli.main", "remote", "accounts", CHANNEL]
    environ = {**clean_environ(), "TRUNKLINE_HOME": str(home)}
    printed = subprocess.run(argv, check=True, capture_output=True, text=True, env=environ).stdout
    (entry,) = re.findall(rf"nkey: {key}, permissions: (.+?)\n      }} }}", printed, re.DOTALL)
    assert set(re.findall(r'"(.+?)"', entry)) == {
        "_INBOX_operator.>", "_INBOX_tools.>", "_INBOX_remote-laptop.>", "trunkline.cmd.remote.laptop.call",
        "trunkline.cmd.remote.laptop.list", "trunkline.ctl.tools.*.cancel",
    }  # fmt: skip
    (tmp_path / "accounts.conf").write_text(printed)
    (tmp_path / "nats-server.conf").write_text((DEPLOY / "nats/nats-server.conf").read_text())
    passwords = {password_variable(user): "p" for user in USERS}
    variables = {**passwords, "TRUNKLINE_NATS_LISTEN": "127.0.0.1:-1", "TRUNKLINE_NATS_STORE": str(tmp_path)}
    binary = server_binary()
    assert binary is not None
    subprocess.run(
        [binary, "-t", "-c", tmp_path / "nats-server.conf"], check=True, env=variables, capture_output=True
    )


def test_an_isolated_plugin_has_a_user_without_request_permissions(tmp_path: Path) -> None:
    """``--plugin`` adds its user: it may subscribe to three subjects of its own and publish to none; the server
    accepts it."""
    argv = [sys.executable, "-m", "trunkline.acl", CHANNEL, "--plugin", "weather"]
    printed = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    (entry,) = re.findall(
        r"user: plugin-weather, password: \S+ permissions: (.+?)\n      } }", printed, re.DOTALL
    )
    assert set(re.findall(r'"(.+?)"', entry)) == {
        ">", "_INBOX_plugin-weather.>", "trunkline.x.weather.tools.list", "trunkline.x.weather.tools.run",
        "trunkline.x.weather.tools.memory", "1h",
    }  # fmt: skip
    assert 'publish: { deny: ">" }' in entry and "allow_responses" in entry
    (tmp_path / "accounts.conf").write_text(printed)
    (tmp_path / "nats-server.conf").write_text((DEPLOY / "nats/nats-server.conf").read_text())
    passwords = {password_variable(user): "p" for user in (*USERS, "plugin-weather")}
    variables = {**passwords, "TRUNKLINE_NATS_LISTEN": "127.0.0.1:-1", "TRUNKLINE_NATS_STORE": str(tmp_path)}
    binary = server_binary()
    assert binary is not None
    subprocess.run(
        [binary, "-t", "-c", tmp_path / "nats-server.conf"], check=True, env=variables, capture_output=True
    )


def services(file: str) -> dict[str, str]:
    """The services of a compose file, each with its text."""
    text = (DEPLOY / file).read_text().split("\nservices:\n")[1].split("\nvolumes:\n")[0]
    parts = re.split(r"^  ([a-z-]+):.*$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_a_container_has_its_own_password_alone() -> None:
    """NATS has all of them, every other service one: that of its user. So it is with the template for a channel."""
    found, channel = services("compose.yaml"), services("compose.channel.yaml")
    assert (set(found), set(channel)) == ({"nats", *SHIPPED}, {"nats", f"channel-{CHANNEL}"})
    for texts, users in ((found, {*SHIPPED}), (channel, {f"channel-{CHANNEL}"})):
        given = re.findall(r"\$\{(\w+):\?\}", texts["nats"])
        assert set(given) == {password_variable(user) for user in users}
    found.update({user: text for user, text in channel.items() if user != "nats"})
    for user in USERS:
        assert f"TRUNKLINE_BUS__USER: {user}\n" in found[user]
        assert re.findall(r"\$\{(TRUNKLINE_NATS_\w+):\?\}", found[user]) == [password_variable(user)]
        if user in KINDS:
            assert f"command: [run, {KINDS[user]}]" in found[user]
    assert all("OPENAI_API_KEY" not in text for user, text in found.items() if user != "monitor")
    assert [text for text in found.values() if "ports:" in text] == [found["gateway"]]
    assert 'ports: ["127.0.0.1:8420:8420"]' in found["gateway"]


def test_a_unit_reads_its_own_password_alone() -> None:
    """One unit for NATS and for each user, each with its own environment file, state and system user."""
    units = {file.stem: configparser.RawConfigParser(strict=False) for file in (DEPLOY / "systemd").iterdir()}
    for name, unit in units.items():
        unit.optionxform = str  # type: ignore[assignment,method-assign]
        unit.read(DEPLOY / f"systemd/{name}.service")
    names = {f"trunkline-{user}".replace(f"channel-{CHANNEL}", "channel@") for user in KINDS}
    assert set(units) == {"trunkline-nats", *names}
    for name, unit in units.items():
        own = name.removeprefix("trunkline-").replace("@", "-%i")
        service = unit["Service"]
        assert service["EnvironmentFile"] == f"/etc/trunkline/{own}.env"
        assert service["StateDirectory"] == f"trunkline-{own}"
        assert service["DynamicUser"] == service["NoNewPrivileges"] == "yes"
        if name != "trunkline-nats":
            kind = "channels" if "@" in name else own
            assert service["ExecStart"].endswith(f"trunkline run {kind} --log json")


def test_a_pod_has_its_own_password_alone() -> None:
    """Each workload has one key of the secret, that of its user, and NATS alone has the whole secret."""
    folder = DEPLOY / "kubernetes"
    texts = {file.name: file.read_text() for file in folder.iterdir()}
    workloads = [part for text in texts.values() for part in text.split("---\n") if "containers:" in part]
    seen = set()
    for part in workloads:
        if "secretRef: {name: trunkline-nats}" in part:
            assert "name: nats" in part
            continue
        (user,) = re.findall(r"TRUNKLINE_BUS__USER, value: ([a-z-]+)\}", part)
        assert re.findall(r"name: trunkline-nats, key: (\w+)", part) == [password_variable(user)]
        assert f"args: [run, {KINDS[user]}," in part
        seen.add(user)
    assert seen == set(KINDS)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze (Debian: systemd)")
def test_systemd_understands_the_units(tmp_path: Path) -> None:
    """No unknown setting, no value that does not fit. The programs need not be installed here."""
    for file in (DEPLOY / "systemd").iterdir():
        text = re.sub(r"/opt/trunkline/\.venv/bin/\S+", "/bin/true", file.read_text())
        (tmp_path / file.name.replace("@", f"@{CHANNEL}")).write_text(text.replace("%i", CHANNEL))
    argv = ["systemd-analyze", "verify", "--man=no", *map(str, sorted(tmp_path.iterdir()))]
    said = subprocess.run(argv, capture_output=True, text=True, check=False)
    ours = [line for line in said.stderr.splitlines() if "trunkline-" in line]
    assert ours == [], said.stderr
    assert said.returncode == 0, said.stderr


def manifests() -> list[dict[str, Any]]:
    """Every Kubernetes object that is shipped."""
    files = sorted((DEPLOY / "kubernetes").iterdir())
    return [one for file in files for one in yaml.safe_load_all(file.read_text()) if one]


API = {
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "Service": "v1",
    "NetworkPolicy": "networking.k8s.io/v1",
}

SAFE = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}


def test_the_manifests_fit_together() -> None:
    """Kinds and versions exist, selectors find their pods, mounts have their volumes, services their ports."""
    found = manifests()
    assert {(one["kind"], one["apiVersion"]) for one in found} <= set(API.items())
    names = [(one["kind"], one["metadata"]["name"]) for one in found]
    assert len(names) == len(set(names))
    workloads = [one for one in found if "template" in one["spec"]]
    pods = [one["spec"]["template"] for one in workloads]
    for one, pod in zip(workloads, pods, strict=True):
        assert one["spec"]["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
        claims = {claim["metadata"]["name"] for claim in one["spec"].get("volumeClaimTemplates", ())}
        volumes = claims | {volume["name"] for volume in pod["spec"].get("volumes", ())}
        assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
        for container in pod["spec"]["containers"]:
            assert {mount["name"] for mount in container.get("volumeMounts", ())} <= volumes
            assert container["securityContext"] == SAFE
            ports = {port["name"] for port in container.get("ports", ())}
            for probe in ("livenessProbe", "readinessProbe"):
                wanted = container.get(probe, {}).get("httpGet", {}).get("port")
                assert wanted is None or isinstance(wanted, int) or wanted in ports
    for service in (one for one in found if one["kind"] == "Service"):
        wanted = service["spec"]["selector"].items()
        assert any(wanted <= pod["metadata"]["labels"].items() for pod in pods), service["metadata"]["name"]
    for one in workloads:
        if one["kind"] == "StatefulSet":
            assert one["spec"]["serviceName"]


def test_the_collectors_pipelines_name_configured_parts() -> None:
    """Each receiver, processor and exporter of a pipeline is configured, and none is configured in vain."""
    collector = yaml.safe_load((DEPLOY / "collector.yaml").read_text())
    for part in ("receivers", "processors", "exporters"):
        used = {name for pipeline in collector["service"]["pipelines"].values() for name in pipeline[part]}
        assert used == set(collector[part])


HARDENED = ("image", "restart", "read_only", "tmpfs", "cap_drop", "security_opt", "depends_on")
"""What all workers' containers have in common."""


@pytest.mark.parametrize("channel", ["without a channel", "with a channel"])
def test_the_compose_file_fits_together(channel: str) -> None:
    """Named volumes exist, every dependency is a service and waits for something that happens."""
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    assert compose["services"].keys() == {"nats", *SHIPPED}
    if channel == "with a channel":
        worker = {key: compose["services"]["gateway"][key] for key in HARDENED}
        template = yaml.safe_load((DEPLOY / "compose.channel.yaml").read_text())
        added = template["services"].pop(f"channel-{CHANNEL}")
        assert {key: added[key] for key in HARDENED} == worker
        compose["services"][f"channel-{CHANNEL}"] = added
        compose["volumes"] |= template["volumes"]
    for service in compose["services"].values():
        sources = {volume.split(":")[0] for volume in service["volumes"]}
        assert {source for source in sources if not source.startswith("./")} <= compose["volumes"].keys()
        assert all((DEPLOY / source).exists() for source in sources if source.startswith("./"))
        for name, wanted in service.get("depends_on", {}).items():
            healthy = wanted["condition"] == "service_healthy"
            assert not healthy or "healthcheck" in compose["services"][name]


def test_the_image_s_lock_is_part_of_the_lock() -> None:
    """The image installs the tested packages: the same versions and hashes, without the test tools."""
    whole = set((ROOT / "requirements.txt").read_text().splitlines())
    part = (DEPLOY / "requirements.txt").read_text().splitlines()
    assert set(part) <= whole
    assert not [line for line in part if line.startswith(("pytest", "mypy", "ruff"))]


def required(name: str, extra: str = "") -> Iterator[str]:
    """Return the requirements of an installed distribution on this machine, with those of the extras that it names."""
    with suppress(metadata.PackageNotFoundError):  # it is for another system
        for text in metadata.requires(name) or ():
            one = Requirement(text)
            spellings = (extra, extra.replace("_", "-"))
            if one.marker is None or any(one.marker.evaluate({"extra": each}) for each in spellings):
                yield canonicalize_name(one.name)
                for wanted in one.extras:
                    yield from required(one.name, wanted)


@pytest.mark.parametrize("lock", [ROOT / "requirements.txt", DEPLOY / "requirements.txt"])
def test_a_lock_is_whole(lock: Path) -> None:
    """Setup resolves nothing: every requirement of a pinned distribution is pinned beside it."""
    pinned = {
        canonicalize_name(line.split("==")[0]) for line in lock.read_text().splitlines() if "==" in line
    }
    assert len(pinned) > 50
    assert {(name, wanted) for name in pinned for wanted in required(name) if wanted not in pinned} == set()
