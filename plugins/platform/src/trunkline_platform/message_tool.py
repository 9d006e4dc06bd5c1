"""Something told to the owner though they have not asked, through a channel that they name."""

import trunkline
from trunkline import ToolError
from trunkline.api.tool import message_preview

LONGEST = 16_000
"""Characters of one message."""


@trunkline.tool(effect="send", unbound_params=("content",))
async def send_channel_message(context: trunkline.ToolContext, channel: str, content: str) -> str:
    """Send the owner a message through one of their channels. Not for answers: what you say in your turn reaches
    them where they are.

    Args:
        channel: The channel's name.
        content: The message.
    """
    if not content.strip() or len(content) > LONGEST:
        raise ToolError(
            f"A message has 1 to {LONGEST} characters. Nothing was sent.", kind="invalid_arguments"
        )
    await context.person.tell(channel, content)
    return f"Sent to the owner through {channel}."


@send_channel_message.previewer
def _preview(context: trunkline.ToolContext, channel: str, content: str) -> trunkline.ApprovalDetail:
    return message_preview(f"you, through the channel {channel}", content)
