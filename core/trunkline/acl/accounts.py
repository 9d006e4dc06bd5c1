"""The ``accounts_config`` block of a nats-server's configuration. Passwords are references to environment variables."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from trunkline.acl.roles import Role, all_roles, remote_role
from trunkline.acl.subject_permissions import subject_permissions
from trunkline.contracts.blocks.paths import is_block_name

ACCOUNT = "TRUNKLINE"
ANSWER_WITHIN = "1h"
"""The time after a request within which a plugin may answer it."""

HEAD = """\
# Made by `python -m trunkline.acl` from core/trunkline/acl/roles.py. Do not edit it here.
# Each user may do what stands in its lists and nothing else. Passwords come from the server's environment.
"""


def accounts_config(
    channels: tuple[str, ...],
    remotes: Mapping[str, str] = MappingProxyType({}),
    plugins: tuple[str, ...] = (),
    delegations: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
) -> str:
    """Return the configuration of an installation with these channels, remotes (public keys by name), isolated
    plugins and delegations (blocks that other agents may use, by the agents' names).

    Raises:
        ValueError: a name of a channel, plugin, agent or block is invalid; a name of a channel, plugin or agent is
            given twice; or a name is reserved for the operator or the gateway.
    """
    _checked(tuple(delegations))
    for block in (block for blocks in delegations.values() for block in blocks):
        if not is_block_name(block):
            raise ValueError(f"{block!r} is not the name of a block; write it in a-z, 0-9 and -")
    everybody = all_roles(_checked(channels), tuple(remotes), _checked(plugins), delegations)
    keys = {remote_role(name).name: key for name, key in remotes.items()}
    users = "\n".join(_user(role, everybody, keys.get(role.name)) for role in everybody)
    return (
        f"{HEAD}accounts {{\n  {ACCOUNT} {{\n    jetstream: enabled\n    users: [\n{users}\n    ]\n  }}\n}}\n"
    )


def password_variable(user: str) -> str:
    """Return the environment variable that holds a user's password on the server."""
    return "TRUNKLINE_NATS_" + user.upper().replace("-", "_")


def _checked(channels: tuple[str, ...]) -> tuple[str, ...]:
    variables = [password_variable(name) for name in channels]
    for name in channels:
        taken = name in ("cli", "terminal", "http") or variables.count(password_variable(name)) > 1
        if taken or not is_block_name(name):
            raise ValueError(
                f"{name!r} cannot be the user of a channel, a plugin or an agent: write each name once, in a-z, 0-9 "
                "and -; cli and terminal are the operator's, http the gateway's own"
            )
    return channels


def _user(role: Role, everybody: tuple[Role, ...], key: str | None) -> str:
    given = subject_permissions(role, everybody)
    who = f"nkey: {key}" if key else f"user: {role.name}, password: ${password_variable(role.name)}"
    lines = (
        f"      {{ {who}, permissions: {{",
        *(_list("publish", given.publish) if given.publish else ('        publish: { deny: ">" }',)),
        *_list("subscribe", given.subscribe),
        *(
            [f'        allow_responses: {{ max: -1, expires: "{ANSWER_WITHIN}" }}']
            if given.allows_responses
            else ()
        ),
        "      } }",
    )
    return "\n".join(lines)


def _list(verb: str, subjects: tuple[str, ...]) -> Iterator[str]:
    yield f"        {verb}: {{ allow: ["
    yield from (f'          "{subject}"' for subject in subjects)
    yield "        ] }"
