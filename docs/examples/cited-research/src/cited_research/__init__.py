"""Research over the documents in memory: agents find and write, and code checks every citation before it is shown."""

import re

import trunkline
from trunkline import MemoryPath
from trunkline.api.model import Call, Finish, ModelAdapter, Text
from trunkline.api.text import unwrap_tool_result

MOST_QUESTIONS = 4
QUESTION = re.compile(r"^\s*(?:[-*]|\d+[.)])\s+(\S.*)", re.MULTILINE)
CITATION = re.compile(r"\[/?(?P<path>documents/[^\]\n;]+?):(?P<line>\d{1,7})\]")
OTHER_FORM = re.compile(r"\bdocuments/[^\s\])]+:\d")
UNCITED = "No statement of this answer is cited, so nothing in it was checked."


@trunkline.tool(effect="read", untrusted_output=True, derived=True)
async def read_lines(
    context: trunkline.ToolContext, path: MemoryPath, first: int = 1, count: int = 200
) -> str:
    """Read a file of memory with the numbers of its lines, to cite them as [path:line].

    Args:
        path: The file, such as /documents/tides.md.
        first: The number of the first line.
        count: At most so many lines.
    """
    lines = (await context.memory.read(path)).content.splitlines()
    return "\n".join(
        f"{number}: {line}" for number, line in enumerate(lines, 1) if 0 <= number - first < count
    )


class CitedResearch(ModelAdapter):
    """Answers a turn in five steps: split the question, research the parts, write, read what is cited, show."""

    name = vendor = "cited"
    derived = True
    configured = False  # never the default adapter: a person names it

    async def stream(self, request):
        question, rounds = since_the_person(request.messages)
        calls, text = next_step(question, rounds)
        yield Text(text)
        for number, (name, arguments) in enumerate(calls):
            id = f"{request.turn}-{len(rounds)}-{number}"
            yield Call(trunkline.ToolCall(id=id, name=name, arguments=arguments))
        yield Finish(reason="tool_calls" if calls else "stop", model=self.name)


def since_the_person(messages):
    """Return the person's last message, and the results of each step's calls since."""
    question, rounds = "", []
    for message in messages:
        if message.role == "user":
            question, rounds = message.content, []
        elif message.role == "assistant" and message.tool_calls:
            rounds.append([])
        elif message.role == "tool":
            rounds[-1].append(message)
    return question, rounds


def next_step(question, rounds):
    """Return the calls of the next step, and the text of the answer if there are none."""
    texts = [[unwrap_tool_result(message.content) for message in results] for results in rounds]
    if rounds and len(rounds) != 4 and all(message.error for message in rounds[-1]):
        return [], "\n".join(texts[-1])
    match len(rounds):
        case 0:
            return [agent("planner", question)], ""
        case 1:
            parts = QUESTION.findall(texts[0][0])[:MOST_QUESTIONS] or [question]
            return [agent("researcher", part) for part in parts], ""
        case 2:
            findings = "\n\n".join(texts[1])
            return [agent("writer", f"Question: {question}\n\nFindings:\n{findings}")], ""
        case 3:
            places = citations(texts[2][0])
            if not places:
                return [], f"{texts[2][0]}\n\n{UNCITED}"
            return [
                ("read_lines", {"path": f"/{path}", "first": line, "count": 1}) for path, line in places
            ], ""
    return [], checked(texts[2][0], dict(zip(citations(texts[2][0]), texts[3], strict=True)))


def agent(type, task):
    return "agent_run", {"type": type, "task": task}


def citations(answer):
    """Return the places that an answer cites, each once."""
    found = ((one["path"], int(one["line"])) for one in CITATION.finditer(answer))
    return list(dict.fromkeys(found))


def checked(answer, lines):
    """Return the answer and the cited lines. A citation of a line that does not exist, or is empty, is marked."""
    sources = {}
    for place, text in lines.items():
        number, _, line = text.partition(": ")
        if number == str(place[1]) and line.strip():
            sources[place] = line.strip()

    def mark(found):
        place = found["path"], int(found["line"])
        return found[0] if place in sources else f"[{place[0]}:{place[1]} DOES NOT EXIST]"

    quotes = [f"[{path}:{number}] {line}" for (path, number), line in sources.items()]
    report = f"{len(lines)} citations were checked, {len(lines) - len(sources)} of them do not exist."
    if others := len(OTHER_FORM.findall(CITATION.sub("", answer))):
        report += f" {others} of another form were not checked."
    return "\n".join([CITATION.sub(mark, answer), "", *quotes, report])


@trunkline.hookimpl
def trunkline_models():
    return [CitedResearch()]


@trunkline.hookimpl
def trunkline_tools():
    return [read_lines]
