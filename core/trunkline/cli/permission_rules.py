"""``trunkline permissions rules``: the owner's rules for agents. Only the owner can change them."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from trunkline.cli.command import Group
from trunkline.cli.completion_types import BlockName
from trunkline.cli.time_type import LocalTime

if TYPE_CHECKING:
    from trunkline.cli._support.rules import RuleFile
    from trunkline.contracts.policies.messages import Conditions

EXAMPLES = """
trunkline permissions rules list
trunkline permissions rules add deny '*' read 'memory:/diary/*'
trunkline permissions rules add allow block:garden send tool:send_mail --max-per-day 10
trunkline permissions rules add allow ann chat block:garden
trunkline permissions rules remove deny-memory-diary
"""

ADDING = """
trunkline permissions rules add deny '*' read 'memory:/diary/*'
trunkline permissions rules add deny block:garden send 'tool:mcp:brave:*' --note "no searches from here"
trunkline permissions rules add allow type:agent write tool:append_to_file --ask
trunkline permissions rules add allow block:garden send tool:send_mail --between 08:00-20:00 --on mon,tue
"""


ACTIONS = ("read", "write", "send", "exec", "network", "chat", "approve", "operate", "*")
"""The actions: those of calls, then those in a shared block."""


@click.group(cls=Group, examples=EXAMPLES)
def command() -> None:
    """Add, list and remove rules.

    A denial always wins. What no rule allows is refused. "trunkline permissions BLOCK" shows the result of all rules.
    The rules are files in memory under policies/, where no agent can write.
    """


@command.command(
    "list",
    examples="trunkline permissions rules list --block garden\ntrunkline permissions rules list --json",
)
@click.option("--block", type=BlockName(), help="Only rules that apply to this block's agent.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_rules(block: str | None, as_json: bool) -> int:
    """List the rules. Fails when one cannot be read: until it is fixed, no tool may be used."""
    from trunkline.cli._support import rules
    from trunkline.cli.memory.attached_memory import with_memory
    from trunkline.cli.output import print_json, print_table

    found = with_memory(lambda bus: rules.read_rules(bus, block))
    broken = any(one.broken for one in found)
    if as_json:
        print_json({"policies": found})
    elif found:
        print_table([(one.id, one.broken or _noted(one)) for one in found], header=("ID", "RULE"))
    else:
        click.echo("There are no rules besides the permissions of each block.")
    return 1 if broken else 0


@command.command("add", examples=ADDING)
@click.argument("effect", type=click.Choice(["allow", "deny"]))
@click.argument("subject")
@click.argument("action", type=click.Choice(ACTIONS))
@click.argument("resource")
@click.option("--ask", is_flag=True, help="Allow each call only after your approval.")
@click.option(
    "--max-per-day", type=click.IntRange(min=0), metavar="TIMES", help="The number of calls allowed each day."
)
@click.option("--between", "time_window", metavar="HH:MM-HH:MM", help="Only between these times of day.")
@click.option("--on", "days", metavar="DAYS", help="Only on these days: mon,tue,wed,thu,fri,sat,sun.")
@click.option(
    "--zone", default="UTC", show_default=True, help="The time zone of --between, --on and --max-per-day."
)
@click.option(
    "--until",
    type=LocalTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M"]),
    help="The rule expires at this time (local).",
)
@click.option("--conversation", metavar="ID", help="Only in this conversation.")
@click.option("--id", default="", help="Name of the rule. Default: made from its content.")
@click.option("--note", default="", help="Your comment on the rule.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def add_rule(
    effect: Any, subject: str, action: str, resource: str, id: str, note: str, as_json: bool, **when: Any
) -> None:
    """Add a rule that allows or denies SUBJECT the ACTION on RESOURCE.

    SUBJECT is block:NAME (its agent), type:agent, '*', or the id of the person whose request an agent carries out.
    RESOURCE is tool:NAME, tool:SOURCE:NAME, memory:/PATH, files:block|workspace|system, system:network or external:HOST
    (a host whose page an agent reads); * stands for any text. Adding a rule that allows something needs your
    confirmation at the terminal; adding a denial does not. A rule may name a block or tool that does not exist yet; the
    output then notes it.
    """
    from datetime import UTC

    import msgspec

    from trunkline.cli._support import rules
    from trunkline.cli.memory.attached_memory import with_memory
    from trunkline.cli.output import print_json, print_text
    from trunkline.config import load_config
    from trunkline.contracts.actors import OWNER
    from trunkline.contracts.policies.messages import Policy
    from trunkline.plugins import Plugins
    from trunkline.policy.explanation import describe_policy

    policy = Policy(
        id=id, subject=subject, resource=resource, action=action, effect=effect, conditions=_conditions(**when),
        note=note, created=datetime.now(UTC), created_by=OWNER,
    )  # fmt: skip
    rules.check_rule(policy)
    plugins = Plugins.load(load_config())
    if resource.startswith("tool:"):
        rules.check_tool_name(policy, plugins.tools_called)
    unknown = with_memory(lambda bus: rules.unknown_names(bus, policy, plugins))
    for one in unknown:
        print_text(f"Note: {one.message}", err=True)
    if effect == "allow":
        _agreed(f"This rule applies from now on: {describe_policy(policy)}.", "Add this rule?")
    kept = with_memory(lambda bus: rules.save_rule(bus, policy))
    if as_json:
        print_json({**msgspec.to_builtins(kept), "unknown": unknown})
    else:
        click.echo(f"{kept.id}: {kept.says}.")


@command.command("remove", examples="trunkline permissions rules remove deny-memory-diary")
@click.argument("id")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def remove_rule(id: str, as_json: bool) -> None:
    """Remove a rule. Needs a terminal, because agents may be allowed more without it. History keeps the rule's text."""
    from trunkline.cli._support import rules
    from trunkline.cli.memory.attached_memory import with_memory
    from trunkline.cli.output import print_json

    rule = with_memory(
        lambda bus: rules.get_rule(bus, id)
    )  # check that the rule exists before asking for confirmation
    _agreed(
        f"The rule {id} no longer applies after this{f': {rule.says}' if rule.says else ''}.",
        "Remove this rule?",
    )
    gone = with_memory(lambda bus: rules.delete_rule(bus, id))
    if as_json:
        print_json(gone)
    else:
        click.echo(f"Removed {id}{f': {gone.says}' if gone.says else ''}.")


def _conditions(
    *,
    ask: bool,
    max_per_day: int | None,
    time_window: str | None,
    days: str | None,
    zone: str,
    until: datetime | None,
    conversation: str | None,
) -> "Conditions":
    """Return the conditions of a rule, from the options. The tools worker validates them."""
    from typing import cast

    from trunkline.contracts.policies.messages import Conditions, Day

    return Conditions(
        requires_approval=ask,
        max_per_day=max_per_day,
        time_window=time_window,
        days=cast("tuple[Day, ...]", tuple(days.lower().split(","))) if days else (),
        zone=zone,
        until=until,
        conversation=conversation,
    )


def _agreed(statement: str, question: str) -> None:
    """Ask a person at a terminal to confirm. No flag replaces this, so a script or an agent cannot confirm."""
    import sys

    from trunkline.errors import TrunklineError

    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise TrunklineError(
            "A change that allows more needs a terminal. Nothing was changed.",
            hint="Run this command yourself, without a pipe or a script.",
        )
    click.echo(statement, err=True)
    if not click.confirm(question, default=False, err=True):
        raise TrunklineError("Nothing was changed.")


def _noted(rule: "RuleFile") -> str:
    note = rule.policy.note if rule.policy else ""
    return f"{rule.says} ({note})" if note else rule.says
