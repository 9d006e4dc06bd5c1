"""The owner's rules in memory: creates, lists and deletes them as the owner. Does not ask or print."""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

import msgspec

from trunkline._util.local_time import format_local_time
from trunkline.cli._support.blocks import block_names, require_block
from trunkline.cli._support.permissions import MEMORY_TIMEOUT, TIMED_GRANTS, append_audit_entry
from trunkline.config.problems import closest_matches
from trunkline.contracts.actors import OWNER
from trunkline.contracts.memory.files import DeleteMemory, MemoryFile, WriteManyMemory
from trunkline.contracts.memory.subjects import MEMORY_DELETE, MEMORY_WRITE_MANY
from trunkline.contracts.policies.messages import Conditions, Policy, PolicyId
from trunkline.errors import ConfigError, ToolError
from trunkline.plugins import Plugins
from trunkline.policy.explanation import describe_policy
from trunkline.policy.policy_match import load_zone
from trunkline.policy.validation import BLOCK_SUBJECT, find_mistake
from trunkline.runtime.owner_policies import POLICY_FOLDER, read_policy_files, require_policy
from trunkline.workers.tools import policy_lint
from trunkline.workers.tools.policy_lint import UnknownName
from trunkline_bus import Bus

APPROVED_PREFIX = "approved-"
"""The prefix of the ids of lasting approvals, which ``trunkline approvals forget`` revokes."""

NO_RULE = '"trunkline permissions rules list" shows the ids there are.'
_FORMS = {
    "subject": "Say block:NAME, type:agent or '*'.",
    "resource": "Say tool:NAME, tool:SOURCE:NAME, memory:/PATH, files:SCOPE, system:network or external:HOST; "
    "* stands for any text.",
    "action": "Say read, write, send, exec, network or '*'.",
}

_FITTING = {"memory": ("read", "write", "*"), "system": ("network", "*")}
"""The possible actions for kinds of resources that do not support all actions."""

_SAID = {"time_window": ("--between", "08:00-20:00"), "days": ("--on", "mon,tue,fri")}
"""The options for conditions with a text format, each with an example."""


class RuleFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A rule file: the rule in words, or the reason why the file cannot be read."""

    id: str
    says: str = ""
    broken: str = ""
    policy: Policy | None = None


async def read_rules(bus: Bus, block: str | None = None) -> list[RuleFile]:
    """Return all rules by id; with ``block``, the rules that apply to its agent, and those that cannot be read.

    Raises:
        ConfigError: the block does not exist, and no rule names it. A rule may exist before its block.
    """
    found = sorted([_rule(file) for file in await read_policy_files(bus)], key=lambda one: one.id)
    if block is None:
        return found
    if not any(one.policy and _about(one.policy) == block for one in found):
        await require_block(bus, block)
    return [one for one in found if _speaks_of(one, block)]


async def get_rule(bus: Bus, id: str) -> RuleFile:
    """Return the rule of that id. Raises ConfigError when there is none."""
    found = {one.id: one for one in await read_rules(bus)}
    if id not in found:
        meant = closest_matches(id, found)
        raise ConfigError(
            f"There is no rule {id}.", hint=f"Did you mean {meant[0]}? {NO_RULE}" if meant else NO_RULE
        )
    return found[id]


async def unknown_names(bus: Bus, policy: Policy, plugins: Plugins) -> tuple[UnknownName, ...]:
    """Return the names in a rule that do not exist now."""
    blocks = await block_names(bus)
    return policy_lint.find_unknown_names(policy, blocks, await policy_lint.known_tools(bus, blocks, plugins))


async def save_rule(bus: Bus, policy: Policy) -> RuleFile:
    """Save a rule under its id, or under an id that is derived from its content.

    Raises:
        ConfigError: the rule would never apply, or the id is in use or not valid.
    """
    check_rule(policy)
    taken = {one.id for one in await read_rules(bus)}
    if policy.id in taken:
        raise ConfigError(
            f"There is a rule {policy.id} already.",
            hint=f"Remove it first, or choose another --id. {NO_RULE}",
        )
    named = msgspec.structs.replace(
        policy, id=policy.id or next(id for id in _ids(policy) if id not in taken)
    )
    kept = msgspec.structs.replace(named, id="")  # the file's name is the id
    text = msgspec.json.format(msgspec.json.encode(kept), indent=2).decode() + "\n"
    path, said = f"{POLICY_FOLDER}/{named.id}.json", describe_policy(named)
    request = WriteManyMemory(files={path: text}, expected={path: ""}, actor=OWNER, reason=f"a rule: {said}")
    await bus.call(MEMORY_WRITE_MANY, request, timeout=MEMORY_TIMEOUT)
    await append_audit_entry(bus, _about(named), f"{named.id}: {said}.")
    return RuleFile(id=named.id, says=said, policy=named)


async def delete_rule(bus: Bus, id: str) -> RuleFile:
    """Delete a rule, even if it cannot be read. Raises ConfigError when there is none of that id."""
    rule = await get_rule(bus, id)
    request = DeleteMemory(
        path=f"{POLICY_FOLDER}/{id}.json", actor=OWNER, reason=f"no rule any more: {rule.says or id}"
    )
    await bus.call(MEMORY_DELETE, request, timeout=MEMORY_TIMEOUT)
    block = _about(rule.policy) if rule.policy else ALL_BLOCKS
    await append_audit_entry(bus, block, f"{id} was removed{f': {rule.says}' if rule.says else ''}.")
    return rule


ALL_BLOCKS = "all"
"""The block of audit entries about rules for all blocks."""


def _about(policy: Policy) -> str:
    return policy.subject.removeprefix("block:") if BLOCK_SUBJECT.fullmatch(policy.subject) else ALL_BLOCKS


def _rule(file: MemoryFile) -> RuleFile:
    id = file.path.removeprefix(f"{POLICY_FOLDER}/").removesuffix(".json")
    try:
        policy = require_policy(file)
    except ToolError as error:
        return RuleFile(id=id, broken=str(error))
    return RuleFile(id=id, says=describe_policy(policy), policy=policy)


def _speaks_of(rule: RuleFile, block: str) -> bool:
    subject = rule.policy.subject if rule.policy else "*"
    return subject == f"block:{block}" or not subject.startswith("block:")


def check_rule(policy: Policy) -> None:
    """Raise ConfigError for a rule that would never apply, so that the owner does not rely on a denial without
    effect.
    """
    if (mistake := find_mistake(policy)) is not None:
        raise ConfigError(mistake.problem, hint=_FORMS[mistake.field])
    _insist_on_fitting(policy.resource, policy.action)
    _insist_on_id(policy.id)
    _insist_on_conditions(policy.conditions)
    if policy.effect == "deny" and (
        policy.conditions.requires_approval or policy.conditions.max_per_day is not None
    ):
        raise ConfigError(
            "A denial cannot have --ask or --max-per-day: it denies every call.",
            hint='Use "allow" with --ask or --max-per-day.',
        )


def _insist_on_fitting(resource: str, action: str) -> None:
    fitting = _FITTING.get(resource.partition(":")[0], (action,))
    if action not in fitting:
        raise ConfigError(
            f"The action {action} does not exist for {resource}, so the rule would never apply.",
            hint=f"Use {' or '.join(fitting)}.",
        )


def _insist_on_id(id: str) -> None:
    given = (APPROVED_PREFIX, *(f"{name}-" for name in TIMED_GRANTS))
    if id.startswith(given):
        raise ConfigError(
            f"Ids that begin with {' or '.join(given)} are reserved for Trunkline.",
            hint="Choose another --id.",
        )
    try:
        msgspec.convert(id or "none", PolicyId)
    except msgspec.ValidationError as error:
        raise ConfigError(
            f"{id!r} is not a valid id for a rule.",
            hint="An id has at most 64 characters of a-z, 0-9, . _ and -, and begins with a letter or a digit.",
        ) from error


def _insist_on_conditions(conditions: Conditions) -> None:
    for field, (option, example) in _SAID.items():
        given = getattr(conditions, field)
        try:
            msgspec.convert({field: given}, Conditions)
        except msgspec.ValidationError as error:
            text = given if isinstance(given, str) else ",".join(given)
            raise ConfigError(
                f"{option} {text} is not a valid time.", hint=f"Write it like {option} {example}."
            ) from error
    try:
        load_zone(conditions.zone)
    except ValueError as error:
        raise ConfigError(str(error), hint="Write it like --zone Europe/Berlin.") from error
    if conditions.until is not None and conditions.until <= datetime.now(UTC):
        raise ConfigError(
            f"{format_local_time(conditions.until)} is in the past, so the rule would never apply.",
            hint="Give --until a time in the future (local time).",
        )


def check_tool_name(policy: Policy, tools_called: Callable[[str], Sequence[str]]) -> None:
    """Raise ConfigError for a rule that names a tool by an alias, because such a rule permits nothing. The error
    lists the tool's own names.
    """
    said = policy.resource.removeprefix("tool:").rpartition(":")[2]
    if meant := tools_called(said):
        raise ConfigError(
            f"{said} is only an alias of {' or '.join(meant)} by.",
            hint=f"Use the tool's own name: {', '.join(f'tool:{name}' for name in meant)}.",
        )


def _ids(policy: Policy) -> Iterator[str]:
    """Yield possible ids for a rule, derived from its effect and resource, the simplest first."""
    about = re.sub(r"[^a-z0-9]+", "-", policy.resource.lower()).strip("-") or "all"
    name = f"{policy.effect}-{about}"[:48].rstrip("-")
    yield name
    number = 2
    while True:
        yield f"{name}-{number}"
        number += 1
