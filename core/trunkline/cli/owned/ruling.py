"""The owner's own rules in memory: made, listed and taken out, as the owner. Asks nobody and prints nothing."""

import re
from collections.abc import Callable, Iterator, Sequence

import msgspec

from trunkline.cli.owned.permitting import GRANTS, OWNER, SECONDS, note_change
from trunkline.errors import ConfigError, ToolError
from trunkline.messages.memory import DeleteMemory, MemoryFile, WriteManyMemory
from trunkline.messages.policies import Policy, PolicyId
from trunkline.policy.explain import in_words
from trunkline.policy.matching import zone
from trunkline.subjects import MEMORY_DELETE, MEMORY_WRITE_MANY
from trunkline.tools.rules import FOLDER, policy_files, policy_in
from trunkline_bus import Bus

APPROVED = "approved-"
"""How the ids of what was approved for longer begin: these are taken back by ``trunkline approvals forget``."""

NO_RULE = '"trunkline policies list" shows the ids there are.'
_BLOCK = re.compile(r"block:[a-z0-9][a-z0-9-]{0,31}")
_RESOURCE = re.compile(
    r"\*|tool:.+|memory:(/.*|\*.*)|files:(block|workspace|system|\*)|system:(network|host-network|\*)|external:.+"
)


class Rule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file of the folder: what it says in words, or why it cannot be read."""

    id: str
    says: str = ""
    broken: str = ""
    policy: Policy | None = None


async def rules(bus: Bus, block: str | None = None) -> list[Rule]:
    """All rules by id; with a block those that speak of its agent, and those that nobody can read."""
    found = (_rule(file) for file in await policy_files(bus))
    return sorted((one for one in found if block is None or _speaks_of(one, block)), key=lambda one: one.id)


async def add(bus: Bus, policy: Policy) -> Rule:
    """Keep a rule, under its id or one made from what it says.

    Raises:
        ConfigError: it would never count, or the id is taken or not fit for one.
    """
    insist_on_sense(policy)
    taken = {one.id for one in await rules(bus)}
    if policy.id in taken:
        raise ConfigError(
            f"There is a rule {policy.id} already.",
            hint=f"Remove it first, or choose another --id. {NO_RULE}",
        )
    named = msgspec.structs.replace(
        policy, id=policy.id or next(id for id in _ids(policy) if id not in taken)
    )
    kept = msgspec.structs.replace(named, id="")  # the name of the file says it
    text = msgspec.json.format(msgspec.json.encode(kept), indent=2).decode() + "\n"
    path, said = f"{FOLDER}/{named.id}.json", in_words(named)
    wish = WriteManyMemory(files={path: text}, expected={path: ""}, actor=OWNER, reason=f"a rule: {said}")
    await bus.call(MEMORY_WRITE_MANY, wish, timeout=SECONDS)
    await note_change(bus, _about(named), f"{named.id}: {said}.")
    return Rule(id=named.id, says=said, policy=named)


async def remove(bus: Bus, id: str) -> Rule:
    """Take a rule out; one that cannot be read too. Raises ConfigError when there is none of that id."""
    rule = next((one for one in await rules(bus) if one.id == id), None)
    if rule is None:
        raise ConfigError(f"There is no rule {id}.", hint=NO_RULE)
    wish = DeleteMemory(
        path=f"{FOLDER}/{id}.json", actor=OWNER, reason=f"no rule any more: {rule.says or id}"
    )
    await bus.call(MEMORY_DELETE, wish, timeout=SECONDS)
    block = _about(rule.policy) if rule.policy else ALL
    await note_change(bus, block, f"{id} was removed{f': {rule.says}' if rule.says else ''}.")
    return rule


ALL = "all"
"""What the audit log names as block for a rule about all of them."""


def _about(policy: Policy) -> str:
    return policy.subject.removeprefix("block:") if _BLOCK.fullmatch(policy.subject) else ALL


def _rule(file: MemoryFile) -> Rule:
    id = file.path.removeprefix(f"{FOLDER}/").removesuffix(".json")
    try:
        policy = policy_in(file)
    except ToolError as error:
        return Rule(id=id, broken=str(error))
    return Rule(id=id, says=in_words(policy), policy=policy)


def _speaks_of(rule: Rule, block: str) -> bool:
    subject = rule.policy.subject if rule.policy else "*"
    return subject == f"block:{block}" or not subject.startswith("block:")


def insist_on_sense(policy: Policy) -> None:
    """Raises ConfigError for a rule that no call would ever meet: who denies something must not be left in error."""
    if policy.subject.startswith("block:") and not _BLOCK.fullmatch(policy.subject):
        raise ConfigError(f"{policy.subject!r} names no block.", hint="Say block:NAME, type:agent or '*'.")
    unknown = policy.subject.startswith("type:") and policy.subject != "type:agent"
    if unknown or policy.subject in ("", "agent", "agents", "owner"):
        raise ConfigError(
            f"{policy.subject!r} is nobody whom a rule can bind.", hint="Say block:NAME, type:agent or '*'."
        )
    if not _RESOURCE.fullmatch(policy.resource):
        raise ConfigError(
            f"{policy.resource!r} is no resource: no call would ever meet this rule.",
            hint="Say tool:NAME, tool:SOURCE:NAME, memory:/PATH, files:SCOPE, system:network or external:HOST; "
            "* stands for any text.",
        )
    given = (APPROVED, *(f"{name}-" for name in GRANTS))
    if policy.id.startswith(given):
        raise ConfigError(
            f"Ids that begin with {' or '.join(given)} are given by Trunkline.", hint="Choose another --id."
        )
    try:
        msgspec.convert(msgspec.to_builtins(policy), Policy)
        if policy.id:
            msgspec.convert(policy.id, PolicyId)
        zone(policy.conditions.zone)
    except (msgspec.ValidationError, ValueError) as error:
        raise ConfigError(f"That is no rule: {error}.", hint="See: trunkline policies add --help") from error


def insist_on_own_name(policy: Policy, tools_called: Callable[[str], Sequence[str]]) -> None:
    """Raises ConfigError for a rule that names a tool by an alias: that permits nothing. It says the own names."""
    said = policy.resource.removeprefix("tool:").rpartition(":")[2]
    if meant := tools_called(said):
        raise ConfigError(
            f"{said} is only another name that models call {' or '.join(meant)} by.",
            hint=f"Name the tool that is meant: {', '.join(f'tool:{name}' for name in meant)}.",
        )


def _ids(policy: Policy) -> Iterator[str]:
    """Names that say what it is about, the plainest first."""
    about = re.sub(r"[^a-z0-9]+", "-", policy.resource.lower()).strip("-") or "all"
    name = f"{policy.effect}-{about}"[:48].rstrip("-")
    yield name
    number = 2
    while True:
        yield f"{name}-{number}"
        number += 1
