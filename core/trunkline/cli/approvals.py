"""``trunkline approvals``: list the calls that wait for a person, decide or answer them, and revoke lasting
approvals.
"""

from typing import TYPE_CHECKING, Literal

import click

from trunkline.cli.attached_gateway import with_gateway
from trunkline.cli.command import Group
from trunkline.cli.completion_types import BlockName

if TYPE_CHECKING:
    from trunkline.contracts.approvals.messages import Approval, ApprovalScope
    from trunkline.contracts.gateway.client import GatewayClient

EXAMPLES = """
trunkline approvals list
trunkline approvals show k3v7q
trunkline approvals approve k3v7q --scope conversation
trunkline approvals deny k3v7q
trunkline approvals answer m4t2a "The one in the kitchen"
"""

SCOPES = ("once", "conversation", "always")


@click.group(cls=Group, examples=EXAMPLES)
def command() -> None:
    """List the calls of every channel that wait for your approval or your answer, and decide them.

    The first characters of an ID are enough. A call that no one decides in time is denied: silence is never a yes.
    """


@command.command("list", examples="trunkline approvals list --block garden\ntrunkline approvals list --json")
@click.option("--block", type=BlockName(), help="Only items of this block.")
@click.option("--settled", is_flag=True, help="Also show those decided in the last hour.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_approvals(block: str | None, settled: bool, as_json: bool) -> None:
    """List waiting calls and questions, the oldest first."""
    from trunkline.cli._support.blocks import require_known_block
    from trunkline.cli.output import print_json, print_table

    async def listed(gateway: "GatewayClient") -> "tuple[Approval, ...]":
        if block is not None:
            require_known_block(block, [one.name for one in (await gateway.block_list()).blocks])
        return (await gateway.approval_list(block=block, settled=settled)).approvals

    found = with_gateway(listed)
    if as_json:
        print_json({"approvals": found})
        return
    if not found:
        click.echo("Nothing waits for a decision.")
        return
    rows = [(one.id, one.block, one.channel, one.tool, _state(one), _about(one)) for one in found]
    print_table(rows, header=("ID", "BLOCK", "FROM", "TOOL", "UNTIL", "WHAT"))


@command.command("show", examples="trunkline approvals show k3v7q")
@click.argument("id")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with complete arguments.")
def show_approval(id: str, as_json: bool) -> None:
    """Show what a call would do."""
    from trunkline._util.text import printable
    from trunkline.cli.output import print_json
    from trunkline.workers.channels.approval_text import approval_news

    found = with_gateway(lambda gateway: gateway.approval(id))
    if as_json:
        print_json({"approval": found.approval, "arguments": found.arguments})
        return
    news = approval_news(
        found.approval, before="trunkline approvals ", wider_by="[--scope conversation|always]"
    )
    click.echo(printable(news))
    click.echo(f"\nturn {found.approval.turn}, conversation {found.approval.conversation}")


@command.command(
    "approve", examples="trunkline approvals approve k3v7q\ntrunkline approvals approve k3v7q --scope always"
)
@click.argument("id")
@click.option(
    "--scope",
    type=click.Choice(SCOPES),
    default="once",
    show_default=True,
    help="Allow this call, similar calls in this conversation, or similar calls in this block from now on.",
)
@click.option("--follow", is_flag=True, help="Print the turn's progress until it ends.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def approve(id: str, scope: Literal["once", "conversation", "always"], follow: bool, as_json: bool) -> int:
    """Allow a call. "show" lists the calls that a wider scope also allows.

    The turn continues on the running platform. If none runs, --follow runs one until the turn ends.
    """
    return _decide(id, allow=True, scope=scope, follow=follow, as_json=as_json)


@command.command("deny", examples="trunkline approvals deny k3v7q")
@click.argument("id")
@click.option("--follow", is_flag=True, help="Print the turn's progress until it ends.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def deny(id: str, follow: bool, as_json: bool) -> int:
    """Deny a call, or leave a question unanswered. The agent is told, and continues without it."""
    return _decide(id, allow=False, follow=follow, as_json=as_json)


@command.command(
    "answer",
    examples='trunkline approvals answer m4t2a "The one in the kitchen"\ntrunkline approvals answer m4t2a 2',
)
@click.argument("id")
@click.argument("text")
@click.option("--follow", is_flag=True, help="Print the turn's progress until it ends.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def answer(id: str, text: str, follow: bool, as_json: bool) -> int:
    """Answer an agent's question, in your words or by the number of a proposed answer. An answer does not approve any
    call."""
    if not text.strip():  # an answer without text would be sent as a plain approval
        raise click.UsageError(
            f"TEXT is empty. To leave a question unanswered: trunkline approvals deny {id}"
        )
    return _decide(id, allow=True, answer=text, follow=follow, as_json=as_json)


@command.command("granted", examples="trunkline approvals granted")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def granted(as_json: bool) -> None:
    """List the approvals that cover more than one call."""
    from trunkline.cli.output import print_json, print_table

    found = with_gateway(lambda gateway: gateway.grants()).grants
    if as_json:
        print_json({"grants": found})
        return
    if not found:
        click.echo("No approval covers more than one call.")
        return
    rows = [
        (one.id, one.subject, one.conditions.conversation or "always", one.created_by, one.note)
        for one in found
    ]
    print_table(rows, header=("ID", "FOR", "WHERE", "BY", "WHAT"))


@command.command("forget", examples="trunkline approvals forget approved-7c2k")
@click.argument("id")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def forget(id: str, as_json: bool) -> None:
    """Revoke an approval that covers more than one call. Such calls need your approval again."""
    from trunkline.cli.output import print_json

    with_gateway(lambda gateway: gateway.forget_grant(id))
    if as_json:
        print_json({"forgotten": id})
    else:
        click.echo(f"{id} is no longer allowed.")


def _decide(
    id: str, *, allow: bool, scope: "ApprovalScope" = "once", answer: str = "", follow: bool, as_json: bool
) -> int:
    from trunkline.workers import KINDS
    from trunkline.workers.channels.approval_text import ApprovalDecision, submit_decision

    async def decided(gateway: "GatewayClient") -> int:
        one = (await gateway.approval(id)).approval
        await submit_decision(gateway, one, ApprovalDecision(one.id, allow, scope, answer))
        if not (follow and as_json):
            _say(one, allow=allow, scope=scope, as_json=as_json)
        if follow:
            return await _followed(gateway, one, as_json=as_json)
        if not as_json and one.settled is None and _is_alone():
            word = "answer" if answer else "approve" if allow else "deny"
            reach = f" --scope {scope}" if scope != "once" else " TEXT" if answer else ""
            click.echo(
                "No platform runs here. The turn continues when one starts, or with: trunkline "
                f"approvals {word} {one.id}{reach} --follow",
                err=True,
            )
        return 0

    return with_gateway(decided, KINDS, log="approvals") if follow else with_gateway(decided)


def _say(one: "Approval", *, allow: bool, scope: "ApprovalScope", as_json: bool) -> None:
    from trunkline._util.text import printable
    from trunkline.cli.output import print_json

    if as_json:
        print_json({"id": one.id, "turn": one.turn, "call": one.call, "allow": allow, "scope": scope})
        return
    far = {
        "once": "",
        "conversation": ", and calls like it in this conversation",
        "always": ", and calls like it",
    }
    if one.detail.is_question:
        click.echo(printable(f"{'Answered' if allow else 'Left unanswered'}: {one.detail.text}"))
        return
    again = " So it was decided before." if one.settled is not None else ""
    click.echo(
        printable(f"{'Allowed' if allow else 'Denied'}: {one.tool} in block {one.block}{far[scope]}.{again}")
    )


def _is_alone() -> bool:
    """Report whether no platform runs on this home except the one that this command started."""
    import os

    from trunkline.config import load_config
    from trunkline.home.paths import Home
    from trunkline.home.run_file import running_pid

    return running_pid(Home.of(load_config())) == os.getpid()


async def _followed(gateway: "GatewayClient", one: "Approval", *, as_json: bool) -> int:
    """Print the events of the turn until it ends or asks again, like ``say``. Return the exit status."""
    from trunkline.cli.turn_printer import JsonTurnPrinter, TurnPrinter
    from trunkline.contracts.gateway.messages import MessageAccepted
    from trunkline.contracts.turns.feed_messages import ApprovalRequested

    saying = JsonTurnPrinter() if as_json else TurnPrinter(stream=False)
    settled = {
        approval.id for approval in (await gateway.approval_list(settled=True)).approvals if approval.settled
    }
    async for event in gateway.watch(one.conversation, one.turn):
        past = isinstance(event, ApprovalRequested) and event.id in {*settled, one.id}
        if not past and saying.handle_event(event):
            break
    accepted = MessageAccepted(block=one.block, conversation=one.conversation, turn=one.turn, message_id="")
    return saying.finish(accepted)


def _state(approval: "Approval") -> str:
    from trunkline._util.local_time import format_local_time
    from trunkline.contracts.approvals.messages import (
        DECIDED_BY_DEADLINE,
        describe_decider,
        describe_withdrawal,
    )

    if approval.settled is None:
        return format_local_time(approval.expires_at)
    is_question = approval.detail.is_question
    if approval.settled.withdrawn:
        return f"withdrawn: {describe_withdrawal(approval.settled.withdrawn, approval.settled.by)}"
    if approval.settled.by == DECIDED_BY_DEADLINE:
        return f"not {'answered' if is_question else 'decided'} in time"
    yes, no = ("answered", "left") if is_question else ("allowed", "denied")
    return f"{yes if approval.settled.allow else no} by {describe_decider(approval.settled.by)}"


def _about(approval: "Approval") -> str:
    from trunkline._util.text import printable

    asked = approval.detail.text if approval.detail.is_question else approval.question
    shown = printable(" ".join((approval.detail.covers or asked).split()))
    return shown if len(shown) <= 60 else shown[:59] + "…"
