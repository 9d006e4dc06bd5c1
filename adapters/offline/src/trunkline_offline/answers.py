"""The answers of the offline adapter: a pure function of the request. The same request always gets the same answer."""

import re

from trunkline import Message, ToolCall
from trunkline.api.channel import format_result
from trunkline.api.memory import Purger
from trunkline.api.model import ModelRequest
from trunkline.api.text import unwrap_tool_result
from trunkline_offline.passages import QuotedPassage, passages_of, rank

SEARCH = "memory_search"
SEARCH_LIMIT = 50
"""Hits to ask for, where the tool lets one say: many may lie in conversations, which are not quoted."""

MAX_PASSAGES = 5
MAX_SINGLE = 5
"""Words that are searched one by one when the search for all of them finds nothing."""

HOW_TO = (
    "No model is configured. To talk to one, set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY. For a server of "
    "your own write into trunkline.toml a model in [adapters.ollama], or the base_url in [adapters.openai] (such as "
    '"http://127.0.0.1:8000/v1" for vLLM). Then start again; '
    "`trunkline init`, or First steps in the web app, asks for what is needed."
)
HELP = """I answer without a model: I look for the words of your question in memory and quote what I find.

- `trunkline memory add FILE` (in a shell) brings text into memory.
- `/tool` lists the tools, `/tool NAME key=value key="two words"` runs one, with a model as well."""


class FixedAnswers(Purger):
    """The sentences that the adapter says in every conversation. The adapter stores nothing."""

    name = "offline"
    texts = (HELP, HOW_TO)


Answer = tuple[str, tuple[ToolCall, ...]]


_GREETING_WORDS = """
hello hi hey hallo moin servus help hilfe thanks thank you danke good morning evening afternoon day guten morgen tag
abend there who are what can do
"""

_STOP_WORDS = """
a about all also am an and any are as at be been but by can could did do does for from had has have he her him his how
i if in into is it its know me mean my no not of on one or our please remember said say says she should so some
something tell than that the their them then there these they thing things this those to us was we were what when
where which who whom whose why will with would you your
aber als am an auch auf aus bei bin bist das dass dein dem den der des die du ein eine einem einen einer er es für habe
haben hat ich ihr im in ist ja kann man mein mir mit nach nicht noch oder sich sie sind so über um und uns von vor war
was weißt wann warum wenn wer wie wir wird wo zu zum zur
"""

GREETINGS = frozenset(_GREETING_WORDS.split())


def answer(request: ModelRequest) -> Answer:
    """The text to say and the tools to call."""
    question, since = _messages_since_question(request)
    if question is None:
        return _with_how_to(HELP), ()
    text = question.content.strip()
    done = [message for message in since if message.role == "tool" and message.name != SEARCH]
    if done:  # a plugin made the call of what the person said
        return "\n\n".join(f"{_result_heading(message)}\n\n{_quote_result(message)}" for message in done), ()
    if is_greeting(text):
        return _with_how_to(HELP), ()
    return _search(request, text, since)


def _messages_since_question(request: ModelRequest) -> tuple[Message | None, tuple[Message, ...]]:
    for number in range(len(request.messages) - 1, -1, -1):
        if request.messages[number].role == "user":
            return request.messages[number], request.messages[number + 1 :]
    return None, ()


def _result_heading(message: Message) -> str:
    return f"{message.name or 'The tool'} {'failed' if message.error else 'says'}:"


def _quote_result(message: Message) -> str:
    """Quote a tool's result: a sentence as it is, lines in a code fence."""
    text = format_result(unwrap_tool_result(message.content)).strip()
    return text if "\n" not in text and not text.startswith(("-", "#", ">")) else f"```\n{text}\n```"


def _search(request: ModelRequest, text: str, since: tuple[Message, ...]) -> Answer:
    words = keywords(text)
    if request.tool_choice.mode == "none" or SEARCH not in {tool.name for tool in request.tools}:
        return _with_how_to("I cannot search memory: no search tool is offered to me here."), ()
    if not words:
        return _with_how_to(HELP), ()
    rounds = sum(1 for message in since if message.tool_calls)
    results = [message for message in since if message.role == "tool"]
    if not rounds:
        return _calls(request, [" ".join(words)])
    found = rank(
        [passages_of(unwrap_tool_result(message.content)) for message in results if not message.error], words
    )
    if not found and rounds == 1 and len(words) > 1 and not any(message.error for message in results):
        return _calls(request, sorted(words, key=len, reverse=True)[:MAX_SINGLE])
    return _with_how_to(_format_report(found, results, words)), ()


def _calls(request: ModelRequest, queries: list[str]) -> Answer:
    tool = next(tool for tool in request.tools if tool.name == SEARCH)
    limit = {"limit": SEARCH_LIMIT} if "limit" in tool.parameters.get("properties", {}) else {}
    return "", tuple(
        ToolCall(id=_call_id(request, number), name=SEARCH, arguments={"query": query, **limit})
        for number, query in enumerate(queries)
    )


def _call_id(request: ModelRequest, number: int) -> str:
    """Unique within the conversation, and the same when the same request is made again."""
    return f"offline_{len(request.messages)}_{number}"


def _format_report(passages: list[QuotedPassage], results: list[Message], words: list[str]) -> str:
    if passages:
        return "In memory I found:\n\n" + "\n\n".join(passage.quoted() for passage in passages[:MAX_PASSAGES])
    failed = next((message.content for message in results if message.error), None)
    if failed is not None:
        return f"Memory could not be searched: {failed}"
    return f"Memory holds nothing about {', '.join(words)}. `trunkline memory add FILE` brings text in."


def _with_how_to(text: str) -> str:
    return f"{text}\n\n{HOW_TO}"


STOP_WORDS = frozenset(_STOP_WORDS.split())


def is_greeting(text: str) -> bool:
    """Report whether the message only greets or asks for help."""
    words = re.findall(r"\w+", text.lower())
    return len(words) <= 5 and all(word in GREETINGS for word in words)


def keywords(text: str) -> list[str]:
    """The words of the question that carry meaning, each once, in order; if none does, all words."""
    words = list(dict.fromkeys(re.findall(r"\w[\w'’-]*", text.lower())))
    return [word for word in words if word not in STOP_WORDS] or words
