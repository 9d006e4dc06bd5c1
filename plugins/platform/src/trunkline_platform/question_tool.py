"""A question to the owner. The platform keeps it, shows it on every channel, and brings the answer."""

import trunkline


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
