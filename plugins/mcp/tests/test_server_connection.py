"""Servers that misbehave, each on a line of its own (CC-T14). Real programs, pipes and the real SDK."""

import json
from dataclasses import replace

import anyio
import pytest

import trunkline
from trunkline.api.sandbox import ProgramRequest, SandboxProcess
from trunkline.errors import OutcomeUnknown
from trunkline.testing.contexts import tool_context
from trunkline_mcp.form_fields import LEAVE_OUT

from .mcp_servers import Bare, Says, called, line_to, ready, until

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("mode", ["plain", "split", "flood", "garbage"])
async def test_cc_t14_arbitrary_server_output_is_survived(tmp_path, mode):
    """One message in many pieces, megabytes on standard error before and between, lines that are no messages."""
    async with line_to(tmp_path, mode) as line:
        tools = await ready(line)
        assert f"echo of {mode}" in await called(tools["echo"], tmp_path)
        assert f"echo of {mode}" in await called(tools["echo"], tmp_path)


async def test_cc_t14_two_hundred_tools_are_read_page_by_page(tmp_path):
    """All pages are read."""
    async with line_to(tmp_path, "pages") as line:
        tools = await ready(line)
        assert len(tools) == 200
        assert "tool_199 of pages" in await called(tools["tool_199"], tmp_path)


async def test_cc_t14_pages_without_end_end(tmp_path):
    """Reading from a server with endless pages is cut off, and this is reported."""
    async with line_to(tmp_path, "endless") as line:
        assert 0 < len(await ready(line)) <= 1000
        assert "more pages" in line.status.left_out[0]


async def test_cc_t14_a_server_hanging_at_its_start_is_skipped_and_reported(tmp_path):
    """It is given its time, then counts as down; a call says that nothing was run."""
    async with line_to(tmp_path, "hang", start_timeout=0.5) as line:
        await until(lambda: line.status.state == "failed")
        assert "did not answer in time" in line.status.why
        assert line.tools == ()


async def test_cc_t14_the_reason_of_an_ended_server_is_reported(tmp_path):
    """The last thing it wrote to its standard error is in the reason."""
    async with line_to(tmp_path, "die") as line:
        await until(lambda: line.status.state == "failed")
        assert "no licence found" in line.status.why


async def test_cc_t14_a_crash_in_a_call_is_unknown_and_the_server_restarts(tmp_path):
    """The call may have had its effect; the next one runs at a new process."""
    async with line_to(tmp_path, "plain") as line:
        tools = await ready(line)
        with pytest.raises(OutcomeUnknown, match="is unknown"):
            await called(tools["crash"], tmp_path)
        await until(lambda: line.status.state == "failed")
        assert await called((await ready(line))["echo"], tmp_path)


async def test_cc_t14_the_first_of_two_tools_with_one_name_is_used(tmp_path):
    """The second tool is omitted and reported; the other tools are there."""
    async with line_to(tmp_path, "repeat") as line:
        tools = await ready(line)
        assert {*tools} == {"search", "other"}
        assert "the first" in tools["search"].spec.description
        assert line.status.left_out == ("'search' is left out: the name 'search' is there already",)


async def test_invalid_tools_are_renamed_or_omitted_individually(tmp_path):
    """A name is changed into one that models accept; a tool without a usable schema or name is omitted."""
    async with line_to(tmp_path, "odd") as line:
        tools = await ready(line)
        assert {*tools} == {"has_dots_and_slashes", "fine"}
        assert "has.dots/and slashes of odd" in await called(tools["has_dots_and_slashes"], tmp_path)
        assert len(line.status.left_out) == 2


async def test_a_change_notification_refreshes_the_tools(tmp_path):
    """The server sends the notification, and its tools are listed again."""
    async with line_to(tmp_path, "changes") as line:
        tools = await ready(line)
        assert "tool_1" in tools
        await called(tools["change"], tmp_path)
        await until(lambda: any(tool.spec.name == "tool_2" for tool in line.tools))


async def test_progress_is_shown_and_a_cancelled_call_is_cancelled_there(tmp_path):
    """Each step is a line of progress; the server is told that the request was cancelled."""
    async with line_to(tmp_path, "plain") as line:
        tools = await ready(line)
        notes: list[str] = []
        context = replace(tool_context(tmp_path), report=notes.append)
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(tools["slow"], context, {})
                await until(lambda: len(notes) > 2)
                scope.cancel()
        assert notes[:2] == ["0 of 100", "1 of 100"]
        with anyio.fail_after(60):
            while "cancelled []" in await called(tools["echo"], tmp_path):  # noqa: ASYNC110 - what it heard by now
                await anyio.sleep(0.05)


async def test_a_servers_failure_is_a_tool_error_with_its_words(tmp_path):
    """The model can act on it; programs know the kind (MN-F18)."""
    async with line_to(tmp_path, "plain") as line:
        with pytest.raises(trunkline.ToolError, match="mcp:brave says of fail: it is broken") as failure:
            await called((await ready(line))["fail"], tmp_path)
        assert failure.value.kind == "upstream_error"


async def test_only_a_person_answers_an_elicitation(tmp_path):
    """A question to a person is declined where no person can be asked."""
    async with line_to(tmp_path, "plain") as line:
        assert '{"action": "decline"}' in await called((await ready(line))["ask"], tmp_path)


async def test_a_person_answers_and_the_defaults_fill_in_the_rest(tmp_path):
    """A field that the person leaves unset has its default (SEP-1034), and the person sees which server asks."""
    async with line_to(tmp_path, "plain") as line:
        ask = (await ready(line))["ask"]
        owner = Says(LEAVE_OUT)
        assert '{"colour": "blue"}' in await called(ask, tmp_path, owner)
        ((question, options),) = owner.asked
        assert question.startswith("The MCP server brave wants to know: ?") and options == [LEAVE_OUT]
        assert '{"colour": "green"}' in await called(ask, tmp_path, Says("green"))
        assert '{"action": "decline"}' in await called(ask, tmp_path, Says())


async def test_a_question_without_a_unique_call_is_declined(tmp_path):
    """With several calls running the question is declined: a person would answer it in the context of another call."""
    async with line_to(tmp_path, "plain") as line:
        tools, owner = await ready(line), Says("green")
        notes: list[str] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(tools["slow"], replace(tool_context(tmp_path), report=notes.append), {})
            await until(lambda: notes)
            assert '{"action": "decline"}' in await called(tools["ask"], tmp_path, owner)
            tasks.cancel_scope.cancel()
        assert owner.asked == []
        assert any(
            "wanted to ask you something. It was declined: 2 calls are under way" in note for note in notes
        )


async def test_an_unreadable_tool_does_not_hide_others(tmp_path):
    """A schema that is text, or missing, a name that is a number, an unexpected type: each is omitted and reported,
    and the others can be called."""
    async with line_to(tmp_path, "broken") as line:
        tools = await ready(line)
        assert {*tools} == {"echo", "fine"} and "fine of broken" in await called(tools["fine"], tmp_path)
        reported = "\n".join(line.status.left_out)
        assert len(line.status.left_out) == 4
        assert (
            "'text' is left out: its inputSchema cannot be read" in reported
            and "'bare' is left out" in reported
        )


async def test_reading_stops_at_the_tool_limit_despite_a_malformed_tool(tmp_path):
    """Looking at each takes time, which all blocks share."""
    async with line_to(tmp_path, "swarm") as line:
        assert len(await ready(line)) == 999
        assert "of 3001 tools on a page only 1000 are read" in line.status.left_out


async def test_a_server_gets_only_the_environment_of_its_entry(tmp_path, monkeypatch):
    """Not a variable of ours; secrets are taken from the environment by name."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-ours")
    monkeypatch.setenv("BRAVE", "b-1")
    env = {"KEY": {"env": "BRAVE"}, "BOTH": "x-${BRAVE}", "LEVEL": 3}
    async with line_to(tmp_path, "plain", env=env) as line:
        said = await called((await ready(line))["environ"], tmp_path)
        given = json.loads(said.split("\n", 1)[1].rsplit("\n", 1)[0])
        assert (given["KEY"], given["BOTH"], given["LEVEL"]) == ("b-1", "x-b-1", "3")
        assert "sk-ours" not in said


async def test_an_unset_secret_prevents_the_start_of_the_server(tmp_path):
    """The reason names the variable."""
    async with line_to(tmp_path, "plain", env={"KEY": {"env": "NO_SUCH_VARIABLE"}}) as line:
        await until(lambda: line.status.state == "failed")
        assert "NO_SUCH_VARIABLE" in line.status.why


async def test_a_server_runs_in_the_sandbox_with_what_its_entry_allows(tmp_path):
    """The entry names the writable folder and the readable paths; there is no network unless it permits one."""
    sandbox = Bare()
    readable = tmp_path / "shown"
    async with line_to(tmp_path, "plain", sandbox=sandbox, readable=[str(readable)]) as line:
        await ready(line)
    (began,) = sandbox.began
    assert began.workspace == tmp_path / "mcp" / "data" / "brave"
    assert began.read_only == {str(readable): readable}
    assert not began.limits.network and began.label == "mcp:brave"


async def test_without_a_sandbox_no_server_runs(tmp_path):
    """There is no silent downgrade: the reason names the missing sandbox."""

    class Nowhere(Bare):
        async def start_program(self, request: ProgramRequest) -> SandboxProcess:
            raise trunkline.ToolError("Programs run only in a sandbox, and there is none.")

    sandbox = Nowhere()
    async with line_to(tmp_path, "plain", sandbox=sandbox) as line:
        await until(lambda: line.status.state == "failed")
        assert "only in a sandbox" in line.status.why and sandbox.began == []


async def test_annotations_of_an_untrusted_server_are_ignored(tmp_path):
    """A tool that claims only to read counts as one that sends; believed, it only reads."""
    async with line_to(tmp_path, "liar") as line:
        spec = (await ready(line))["peek"].spec
        assert (spec.effect, spec.idempotent, spec.source) == ("send", False, "mcp:brave")
    async with line_to(tmp_path, "liar", trust="trusted") as line:
        spec = (await ready(line))["peek"].spec
        assert (spec.effect, spec.idempotent) == ("read", True)


async def test_descriptions_and_results_are_marked_as_data_and_end_no_mark(tmp_path):
    """Neither can imitate the end of the data."""
    async with line_to(tmp_path, "liar") as line:
        tool = (await ready(line))["peek"]
        assert tool.spec.description.startswith("[Of the MCP server brave]")
        assert "</context>" not in tool.spec.description and "<context" not in tool.spec.description
        said = await called(tool, tmp_path)
        assert said.startswith('<context source="mcp:brave"') and said.count("</context") == 1
