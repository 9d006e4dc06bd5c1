"""Watches a git repository. No model is asked while it is unchanged; otherwise agents review it and propose changes."""

import re

import trunkline
from trunkline.api.model import Call, Finish, ModelAdapter, Text
from trunkline.api.text import unwrap_tool_result

COMMIT = re.compile(r"\b[0-9a-f]{40}\b")
REVIEWED = re.compile(r"^Reviewed up to ([0-9a-f]{40})\.", re.MULTILINE)
NOTHING = "NOTHING TO CHANGE"
REVIEW = "Review {what} of the repository {folder}. Answer {nothing} if nothing in it should be changed."
EDIT = (
    "In the repository {folder}, begin the branch {proposal} at {commit}, make this change there, and commit it.{back}"
    "\n\n{review}"
)
CHECK = (
    "Review the branch {proposal} of the repository {folder} (git diff {commit} {proposal}). "
    "Does it do this?\n\n{review}"
)


class Watch(ModelAdapter):
    """Answers a message "FOLDER BRANCH" in at most six steps: look, review, edit, look, review the edit, report.

    What was reviewed is in the conversation, which all runs of the schedule share.
    """

    name = vendor = "watch"
    derived = True
    configured = False  # never the default adapter: only the schedule names it

    async def stream(self, request):
        call, text = next_step(request.messages)
        yield Text(text)
        if call is not None:
            id = f"{request.turn}-{len(since_the_schedule(request.messages)[1])}"
            yield Call(trunkline.ToolCall(id=id, name=call[0], arguments=call[1]))
        yield Finish(reason="stop" if call is None else "tool_calls", model=self.name)


def since_the_schedule(messages):
    """Return the last message that is no result of a tool and no answer, and the results since."""
    last = max(number for number, message in enumerate(messages) if message.role == "user")
    return messages[last].content, [message for message in messages[last:] if message.role == "tool"]


def next_step(messages):
    """Return the call of the next step, or None and the text of the answer."""
    instruction, results = since_the_schedule(messages)
    folder, branch = instruction.split()[:2]
    texts = [unwrap_tool_result(message.content) for message in results]
    if not results:
        return look(folder, branch), ""
    commit, before = head_of(texts[0]), last_reviewed(messages)
    if not commit or (results[-1].error and len(results) <= 2):
        return None, f"The repository {folder} was not reviewed. {texts[-1]}"
    if commit == before:
        return None, "ALL QUIET"
    what = f"the commits {before}..{commit}" if before else f"the commit {commit}"
    names = {"folder": folder, "branch": branch, "commit": commit, "proposal": f"proposal/{commit[:8]}"}
    match texts:
        case [_]:
            return agent("reviewer", REVIEW.format(what=what, nothing=NOTHING, **names)), ""
        case [_, review] if review.strip(" .*\n") == NOTHING:
            return None, f"Reviewed up to {commit}. Nothing should be changed."
        case [_, review]:
            back = "" if branch.startswith("refs/") else f" Then switch back to {branch}."
            return agent("editor", EDIT.format(review=review, back=back, **names)), ""
        case [_, review, edited] if results[-1].error:
            return None, f"Reviewed up to {commit}.\n\n{review}\n\nNo change was proposed. {edited}"
        case [_, _, _]:
            return look(folder, names["proposal"]), ""
        case [_, review, _, proposed] if (made := head_of(proposed)) and made != commit:
            return agent("reviewer", CHECK.format(review=review, **names)), ""
        case [_, review, edited, _]:
            return None, f"Reviewed up to {commit}.\n\n{review}\n\nNothing was committed. {edited}"
    report = f"{texts[1]}\n\nThe branch {names['proposal']}: {texts[2]}\n\nThe review of it: {texts[4]}"
    return None, f"Reviewed up to {commit}.\n\n{report}"


def look(folder, branch):
    """Return the call that finds the commit of a branch, and of no tag with the same name."""
    name = branch if branch.startswith("refs/") else f"refs/heads/{branch}"
    return "git", {"command": ["git", "rev-parse", "--verify", name], "folder": folder}


def head_of(report):
    """Return the commit that git rev-parse printed; "" if there is no such branch."""
    found = COMMIT.search(report)
    return found[0] if found and report.startswith("exit code 0") else ""


def agent(type, task):
    return "agent_run", {"type": type, "task": task}


def last_reviewed(messages):
    """Return the commit that an earlier answer ends at; "" at the first run."""
    found = [REVIEWED.match(message.content) for message in messages if message.role == "assistant"]
    return next((one[1] for one in reversed(found) if one), "")


@trunkline.hookimpl
def trunkline_models():
    return [Watch()]
