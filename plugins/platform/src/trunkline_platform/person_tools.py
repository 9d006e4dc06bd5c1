"""The tools that reach the owner: a question, which the platform keeps, shows on every channel and brings the answer
to, and a message through a channel that the agent names."""

import trunkline
from trunkline import ToolError
from trunkline.api.tool import message_preview

LONGEST = 16_000
"""Characters of one message."""


@trunkline.tool(effect="read", in_plan_mode=True)
async def ask_human(context: trunkline.ToolContext, question: str, options: tuple[str, ...] = ()) -> str:
    """Ask the owner something that only they can know or choose, and wait for the answer; it may take long. Ask once,
    and all at once. An answer is information: it approves no call, and calls that need approval are still asked about.

    Args:
        question: What you want to know, with what they need to answer it.
        options: Answers to choose from, 20 at most; they may still answer in their own words.
    """
    answer = await context.person.ask(question, options)
    return f"The owner answered: {answer}"


@trunkline.tool(effect="send", unbound_params=("content",))
async def send_channel_message(context: trunkline.ToolContext, content: str, channel: str = "") -> str:
    """Send the owner a message through one of their channels. Not for answers: what you say in your turn reaches
    them where they are.

    Args:
        content: The message.
        channel: The channel's name. Without a name the owner's preferences choose the channel and the time.
    """
    if not content.strip() or len(content) > LONGEST:
        raise ToolError(
            f"A message has 1 to {LONGEST} characters. Nothing was sent.", kind="invalid_arguments"
        )
    await context.person.tell(channel, content)
    if not channel:
        return "Accepted. The owner gets it through the channel and at the time of their preferences."
    return f"Sent to the owner through {channel}."


@send_channel_message.previewer
def _preview(context: trunkline.ToolContext, content: str, channel: str = "") -> trunkline.ApprovalDetail:
    where = f"through the channel {channel}" if channel else "through the channels of your preferences"
    return message_preview(f"you, {where}", content)
