"""A briefing for which no model is asked while nothing is due. Otherwise the adapter gives what is due to an agent."""

import re

import trunkline
from trunkline.api.memory import utc_now
from trunkline.api.model import Call, Finish, ModelAdapter, Text
from trunkline.api.text import to_local_time, unwrap_tool_result

AGENDA = "agenda.md"
ITEM = re.compile(r"^\s*[-*] (?P<task>\[ \] )?(?P<date>\d{4}-\d\d-\d\d)\b.*\S", re.MULTILINE)
NOTHING = "Nothing is due."
TASK = "Write my briefing. These lines of my agenda are due:\n\n{lines}"


@trunkline.tool(effect="read", untrusted_output=True, derived=True)
async def due_items(context: trunkline.ToolContext) -> str:
    """Return the lines of agenda.md that are due: appointments of today, and open tasks of today and before."""
    agenda = (await context.memory.read(AGENDA)).content
    today = to_local_time(utc_now()).date().isoformat()
    due = [
        found[0].strip()
        for found in ITEM.finditer(agenda)
        if found["date"] == today or (found["task"] and found["date"] < today)
    ]
    return "\n".join([f"Today is {today}.", *due]) if due else NOTHING


class Briefing(ModelAdapter):
    """Answers a turn in at most three steps: look at the agenda, have it written up, show the result."""

    name = vendor = "briefing"
    derived = True
    configured = False  # never the default adapter: only the schedule names it

    async def stream(self, request):
        call, text = next_step(request.messages)
        yield Text(text)
        if call is not None:
            yield Call(trunkline.ToolCall(id=f"{request.turn}-{call[0]}", name=call[0], arguments=call[1]))
        yield Finish(reason="stop" if call is None else "tool_calls", model=self.name)


def next_step(messages):
    """Return the call of the next step, or None and the text of the answer."""
    last = max(number for number, message in enumerate(messages) if message.role == "user")
    results = [message for message in messages[last:] if message.role == "tool"]
    texts = [unwrap_tool_result(message.content).strip() for message in results]
    if not results:
        return ("due_items", {}), ""
    if results[-1].error or len(results) == 2:
        return None, texts[-1]
    if texts == [NOTHING]:
        return None, "ALL QUIET"
    return ("agent_run", {"type": "briefer", "task": TASK.format(lines=texts[0])}), ""


@trunkline.hookimpl
def trunkline_models():
    return [Briefing()]


@trunkline.hookimpl
def trunkline_tools():
    return [due_items]
