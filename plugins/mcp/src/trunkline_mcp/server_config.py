"""The configured MCP servers: ``mcp.json`` in the home for all blocks, ``mcp/BLOCK.json`` for one. Starts nothing.

The format is the field's (``mcpServers``), so a file of another program can be copied. One bad entry hurts no other:
it is left out and told. Both files lie in the home, where no agent's tool reaches, because who writes them decides
which programs run.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from trunkline.api.files import SettingsFileError, read_json
from trunkline.api.memory import is_block_name
from trunkline_mcp.env_references import EnvReference, literal_secrets, parse_reference

CONFIG_FILE = "mcp.json"
CONFIG_FOLDER = "mcp"

DEFAULT_TIMEOUT = 300.0
"""Seconds that a call may take unless ``timeout`` says otherwise."""

START_SECONDS = 10.0
"""Seconds that a server has to answer after its start unless ``start_timeout`` says otherwise."""

PROTOCOLS = ("", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")

Trust = Literal["untrusted", "trusted"]

KEYS = (
    "command", "args", "env", "url", "headers", "type", "disabled", "trust", "network", "folder", "readable", "timeout",
    "start_timeout", "protocol", "oauth", "description",
)  # fmt: skip


class InvalidEntryError(ValueError):
    """A server's entry cannot be used; the text says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class ClientRegistration:
    """As whom we are known to a server's authorization server, where somebody registered us by hand; or where it can
    read who we are."""

    client_id: str = ""
    client_secret: EnvReference | None = None
    metadata_url: str | None = None


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """The configuration of a server.

    ``command`` runs in the sandbox, ``url`` is asked over HTTP; one of them is there. ``trust`` says whether what the
    server tells of its tools is believed. ``network`` is whether its sandbox has one, and ``host_network`` whether that
    is this machine's own, with what listens on loopback; ``folder`` is the one folder that it may write (a folder of
    its own by default), ``readable`` what else it is shown. ``timeout`` is in seconds, a call; ``start_timeout`` until
    it answers at all. ``protocol`` is the one to speak, or none to find out.
    """

    name: str
    block: str = ""
    command: tuple[str, ...] = ()
    env: Mapping[str, EnvReference] = field(default_factory=dict)
    url: str = ""
    headers: Mapping[str, EnvReference] = field(default_factory=dict)
    trust: Trust = "untrusted"
    network: bool = False
    host_network: bool = False
    folder: Path | None = None
    readable: tuple[Path, ...] = ()
    timeout: float = DEFAULT_TIMEOUT
    start_timeout: float = START_SECONDS
    protocol: str = ""
    registration: ClientRegistration = ClientRegistration()
    disabled: bool = False

    @property
    def identity(self) -> str:
        """The unique name of the server: ``brave``, or ``garden/brave`` for one that only the block garden has."""
        return f"{self.block}/{self.name}" if self.block else self.name

    @property
    def source(self) -> str:
        """The source of its tools."""
        return f"mcp:{self.identity}"

    def missing_variables(self, environ: Mapping[str, str]) -> list[str]:
        """Variables that its entry names and that are not set."""
        secret = self.registration.client_secret
        given = (*self.env.values(), *self.headers.values(), *((secret,) if secret else ()))
        return sorted({name for one in given for name in one.variables if not environ.get(name)})


@dataclass(frozen=True, slots=True)
class ServerProblem:
    """Something of a file that is not used as it stands there. ``fatal``: the server, or the file, is left out."""

    where: str
    what: str
    fatal: bool = True


@dataclass(frozen=True, slots=True)
class ServerConfigs:
    """The servers of a home, and what is wrong."""

    servers: tuple[ServerConfig, ...]
    problems: tuple[ServerProblem, ...]

    @property
    def enabled(self) -> tuple[ServerConfig, ...]:
        """Return the servers that are not disabled."""
        return tuple(server for server in self.servers if not server.disabled)


def config_files(home: Path) -> list[tuple[str, Path]]:
    """The files that may name servers: the block (none for all) and the path, whether it is there or not."""
    own = sorted((home / CONFIG_FOLDER).glob("*.json"))
    return [("", home / CONFIG_FILE), *((path.stem, path) for path in own)]


def load_servers(home: Path) -> ServerConfigs:
    """All servers of a home. Never raises for what is in the files."""
    servers: list[ServerConfig] = []
    problems: list[ServerProblem] = []
    for block, path in config_files(home):
        if block and not is_block_name(block):
            problems.append(ServerProblem(str(path), f"{block!r} is not the name of a block"))
            continue
        found = _load_file(block, path)
        servers += found.servers
        problems += found.problems
    return ServerConfigs(tuple(servers), tuple(problems))


def read_entries(path: Path) -> dict[str, Any]:
    """The entries of a file as they stand there; none when there is no file.

    Raises:
        InvalidEntryError: the file cannot be read or is not of the format.
    """
    try:
        data = read_json("it", path.read_bytes(), dict)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise InvalidEntryError(f"it cannot be read: {error.strerror}") from error
    except SettingsFileError as error:
        raise InvalidEntryError(f"not readable: {error}") from error
    entries = data.get("mcpServers", {}) if isinstance(data, dict) else None
    if not isinstance(entries, dict):
        raise InvalidEntryError(
            'it must have the form {"mcpServers": {"name": {"command": "...", "args": []}}}'
        )
    return entries


def unknown_server_hint(home: Path, identity: str) -> str:
    """Return a hint for an unknown server name: the most similar name, and the command that lists the servers."""
    known = [server.identity for server in load_servers(home).servers if server.identity != identity]
    name = identity.rpartition("/")[2]
    meant = [one for one in known if one.rpartition("/")[2] == name] or get_close_matches(identity, known, 1)
    suggestion = f"Did you mean {meant[0]}? " if meant else ""
    return f'{suggestion}"trunkline mcp list" shows all servers.'


def _load_file(block: str, path: Path) -> ServerConfigs:
    try:
        entries = read_entries(path)
    except InvalidEntryError as error:
        return ServerConfigs((), (ServerProblem(str(path), str(error)),))
    servers: list[ServerConfig] = []
    problems: list[ServerProblem] = []
    for name, entry in entries.items():
        where = f"{path.name}: {name}"
        try:
            servers.append(parse_server(name, entry, block))
        except InvalidEntryError as error:
            problems.append(ServerProblem(where, str(error)))
        else:
            problems += [ServerProblem(where, what, fatal=False) for what in _warnings(entry)]
    return ServerConfigs(tuple(servers), tuple(problems))


def parse_server(name: str, entry: Any, block: str = "") -> ServerConfig:
    """A server as its entry describes it. Raises InvalidEntryError."""
    if NAME.fullmatch(name) is None:
        raise InvalidEntryError("a server's name has 1 to 32 letters, digits, _ and -")
    if not isinstance(entry, dict):
        raise InvalidEntryError("it has to be an object with a command or a url")
    for key in entry.keys() - set(KEYS):
        if near := get_close_matches(
            key, KEYS, 1, cutoff=0.75
        ):  # a slip in "disabled" must not begin the server
            raise InvalidEntryError(f"there is no {key!r}; did you mean {near[0]!r}?")
    command, url = _command(entry), _url(entry)
    if bool(command) == bool(url):
        raise InvalidEntryError(
            "it needs a command or a url" if not url else "it has a command and a url; keep one"
        )
    trust = entry.get("trust", "untrusted")
    if trust not in ("untrusted", "trusted"):
        raise InvalidEntryError('trust is "untrusted" or "trusted"')
    network = _network(entry, default=trust == "trusted")
    return ServerConfig(
        name=name,
        block=block,
        command=command,
        env=_references(entry, "env"),
        url=url,
        headers=_references(entry, "headers"),
        trust=trust,
        network=network is not False,
        host_network=network == "host",
        folder=_folder(entry["folder"], "folder") if entry.get("folder") else None,
        readable=_folders(entry, "readable"),
        timeout=_seconds(entry, "timeout", DEFAULT_TIMEOUT),
        start_timeout=_seconds(entry, "start_timeout", START_SECONDS),
        protocol=_protocol(entry),
        registration=_registration(entry.get("oauth") or {}),
        disabled=_boolean(entry, "disabled", default=False),
    )


def _command(entry: Mapping[str, Any]) -> tuple[str, ...]:
    program, arguments = entry.get("command", ""), entry.get("args", [])
    if not isinstance(program, str):
        raise InvalidEntryError("command has to be text: the program alone")
    if not isinstance(arguments, list) or not all(isinstance(one, str | int | float) for one in arguments):
        raise InvalidEntryError('args has to be a list of texts, as in ["-y", "server"]')
    words = (program, *map(str, arguments))
    if any("\0" in word for word in words):
        raise InvalidEntryError("command and args may hold no NUL")
    return words if program.strip() else ()


def _url(entry: Mapping[str, Any]) -> str:
    url, kind = entry.get("url", ""), entry.get("type", "")
    if kind == "sse":
        raise InvalidEntryError(
            "the transport sse is no longer supported; ask the server for its Streamable HTTP address"
        )
    if not isinstance(url, str):
        raise InvalidEntryError("url has to be text")
    if url and not re.match(r"https?://[^\s/]+", url):
        raise InvalidEntryError("url has to begin with https:// or http://")
    return url


def _references(entry: Mapping[str, Any], key: str) -> dict[str, EnvReference]:
    given = entry.get(key) or {}
    if not isinstance(given, dict):
        raise InvalidEntryError(f"{key} has to be an object of names and values")
    try:
        return {str(name): parse_reference(value) for name, value in given.items()}
    except ValueError as error:
        raise InvalidEntryError(f"{key}: {error}") from error


def _boolean(entry: Mapping[str, Any], key: str, *, default: bool) -> bool:
    value = entry.get(key, default)
    if not isinstance(value, bool):
        raise InvalidEntryError(f"{key} is true or false")
    return value


def _network(entry: Mapping[str, Any], *, default: bool) -> bool | Literal["host"]:
    value = entry.get("network", default)
    if value == "host":
        return "host"
    if not isinstance(value, bool):
        raise InvalidEntryError('network is true, false, or "host" for this machine\'s own')
    return value


def _folders(entry: Mapping[str, Any], key: str) -> tuple[Path, ...]:
    given = entry.get(key, [])
    if not isinstance(given, list):
        raise InvalidEntryError(f"{key} has to be a list of folders")
    return tuple(_folder(one, key) for one in given)


def _folder(value: Any, key: str) -> Path:
    folder = Path(value).expanduser() if isinstance(value, str) and "\0" not in value else None
    if folder is None or not folder.is_absolute():
        raise InvalidEntryError(f"{key}: a folder needs an absolute path, such as /srv/notes")
    return folder


def _seconds(entry: Mapping[str, Any], key: str, default: float) -> float:
    value = entry.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 86_400:
        raise InvalidEntryError(f"{key} is a number of seconds above 0, a day at most")
    return float(value)


def _protocol(entry: Mapping[str, Any]) -> str:
    value = entry.get("protocol", "")
    if value not in PROTOCOLS:
        raise InvalidEntryError(f"protocol is one of {', '.join(PROTOCOLS[1:])}, or left out to find it out")
    return str(value)


def _registration(value: Any) -> ClientRegistration:
    if not isinstance(value, dict):
        raise InvalidEntryError(
            'oauth must have the form {"client_id": "...", "client_secret": {"env": "NAME"}}'
        )
    client, metadata = value.get("client_id", ""), value.get("client_metadata_url")
    if not isinstance(client, str) or not (metadata is None or isinstance(metadata, str)):
        raise InvalidEntryError("oauth: client_id and client_metadata_url are texts")
    try:
        secret = parse_reference(value["client_secret"]) if value.get("client_secret") else None
    except ValueError as error:
        raise InvalidEntryError(f"oauth: {error}") from error
    return ClientRegistration(client, secret, metadata)


def _warnings(entry: Mapping[str, Any]) -> Iterator[str]:
    unknown = [key for key in entry if key not in KEYS]
    if unknown:
        yield f"{', '.join(map(repr, unknown))} is not known and is ignored"
    for key in ("env", "headers", "oauth"):
        for name in literal_secrets(entry.get(key) or {}):
            yield f'{key} {name} looks like a secret; write {{"env": "{name.upper().replace("-", "_")}"}} for it'
