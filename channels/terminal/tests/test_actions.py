"""What the slash commands do, on a scripted gateway."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from trunkline.contracts.channels.foreground_channel import TerminalSession
from trunkline.contracts.conversations.messages import Message
from trunkline.contracts.gateway.messages import SendMessage
from trunkline.contracts.models.abilities_client import NoAbilities
from trunkline.errors import TrunklineError
from trunkline_bus import new_id
from trunkline_terminal import saved_conversation
from trunkline_terminal.commands import COMMANDS
from trunkline_terminal.diff_display import two_columns
from trunkline_terminal.file_mentions import mentioned_files
from trunkline_terminal.input_files import mention_of_paste
from trunkline_terminal.message_files import MessageFiles
from trunkline_terminal.model_parameters import read_parameters
from trunkline_terminal.text_format import fit
from trunkline_terminal.text_match import best_matches

from .test_session import talking

pytestmark = pytest.mark.anyio


class Shell:
    """The command line as a session gets it: it keeps what was run."""

    def __init__(self, fails: str = "") -> None:
        self.ran: list[tuple[str, ...]] = []
        self._fails = fails
        self.mode_now = "asks"

    async def run(self, arguments: Sequence[str]) -> str:
        """Keep the arguments."""
        self.ran.append(tuple(arguments))
        if self._fails:
            raise TrunklineError(self._fails, hint="Do something else.")
        if "--plan" in arguments:
            self.mode_now = "plan mode"
        return f"printed by {arguments[0]}"

    async def mode(self, block: str, conversation: str | None) -> str:
        """The mode now."""
        return f"{self.mode_now} in {block}" if self.mode_now == "asks" else self.mode_now

    def session(self, block: str | None = "main") -> TerminalSession:
        """A session with this command line."""
        return TerminalSession(block=block, run_command=self.run, mode=self.mode)


@pytest.mark.parametrize(
    ("line", "ran"),
    [
        ("/config gateway", ("config", "gateway")),
        ("/mcp", ("mcp", "list")),
        ("/memory notes.md", ("memory", "show", "notes.md")),
        ("/memory", ("memory", "list", "blocks/main")),
        ("/plan on", ("permissions", "main", "--plan")),
        ("/create-block work hello", ("blocks", "create", "--", "work")),
    ],
)
async def test_MN_F28_commands_of_the_platform_are_run_and_shown(line: str, ran: tuple[str, ...]) -> None:
    """They are commands of ``trunkline``, with the same output as in a shell."""
    shell = Shell()
    async with talking(begin=shell.session()) as talk:
        await talk.say(line)
        assert shell.ran[-1] == ran and talk.screen.all("error") == []
        if ran[0] not in ("permissions", "blocks"):
            assert f"printed by {ran[0]}" in talk.screen.all("note")


async def test_MB_F8_a_new_block_is_entered_and_gets_the_text() -> None:
    """/create-block NAME TEXT sends the text to the new block, in a new conversation."""
    async with talking(begin=Shell().session()) as talk:
        await talk.say("one", "/create-block work hello there")
        assert (talk.gateway.sent[-1].block, talk.gateway.sent[-1].content) == ("work", "hello there")
        assert talk.gateway.sent[-1].conversation is None


async def test_a_command_that_fails_says_its_own_sentence() -> None:
    """The sentence and the hint of the command line are shown, and the person stays where they are."""
    async with talking(begin=Shell("There is a block of this name.").session()) as talk:
        await talk.say("/create-block work hi")
        assert talk.screen.all("error") == ["There is a block of this name. Do something else."]
        assert talk.session.place.block == "main" and talk.gateway.sent == []


async def test_without_a_command_line_the_command_for_a_shell_is_named() -> None:
    """A program that embeds the channel may have none."""
    async with talking() as talk:
        await talk.say("/config gateway")
        assert "trunkline config gateway" in talk.screen.all("error")[0]


async def test_the_status_line_has_the_mode() -> None:
    """It is asked for at the start, on the way to another block, and after /plan."""
    shell = Shell()
    async with talking(begin=shell.session()) as talk:
        assert talk.screen.statuses[-1].mode == "asks in main"
        await talk.say("/switch work")
        assert talk.screen.statuses[-1].mode == "asks in work"
        await talk.say("/plan on")
        assert talk.screen.statuses[-1].mode == "plan mode"
        await talk.say("/plan off")
        assert "It planned by itself" in talk.screen.all("note")[-1]


async def test_MN_F28_parameters_hold_for_the_next_messages() -> None:
    """They go with each message until they are taken back; a wrong value is refused and changes nothing."""
    async with talking() as talk:
        await talk.say(
            "/params temperature=0.2 max_tokens=50 top_p=0.5", "one", "/params temperature=hot", "two"
        )
        await talk.say("/params default", "three")
        first, second, third = talk.gateway.sent
        assert (first.temperature, first.max_tokens, first.parameters) == (0.2, 50, {"top_p": 0.5})
        assert second.temperature == 0.2 and len(talk.screen.all("error")) == 1
        assert (third.temperature, third.max_tokens, third.parameters) == (None, None, {})


@pytest.mark.parametrize(
    "text", ["temperature", "temperature=hot", "max_tokens=0", "max_tokens=true", "a-b=1", "x='"]
)
def test_wrong_parameters_are_refused(text: str) -> None:
    """Each with an example."""
    with pytest.raises(TrunklineError) as caught:
        read_parameters(text)
    assert "/params temperature=0.2" in caught.value.hint


async def test_MN_F28_skills_are_listed_by_the_agents_tools() -> None:
    """/skills lists them, /skills NAME shows one."""
    async with talking() as talk:
        await talk.say("/skills", "/skills weeding")
        assert [message.content for message in talk.gateway.sent] == [
            "/tool list_skills", "/tool use_skill name=weeding",
        ]  # fmt: skip


async def test_MN_F28_memory_is_cleared_only_after_a_yes() -> None:
    """The agent deletes the file, so that permissions hold; without a yes nothing is sent."""
    async with talking() as talk:
        await talk.say("/memory clear")
        talk.screen.allow = True
        await talk.say("/memory clear")
        assert [message.content for message in talk.gateway.sent] == ["/tool memory_delete path=/MEMORY.md"]


async def test_MN_F28_clear_empties_the_screen_and_begins_anew() -> None:
    """The next message begins another conversation; the first one stays stored."""
    async with talking() as talk:
        await talk.say("one", "/clear", "two")
        assert talk.screen.all("clear") and talk.gateway.sent[-1].conversation is None


async def test_MN_F28_load_offers_the_latest_twenty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a file the person picks one, the newest first; picking none loads nothing."""
    monkeypatch.chdir(tmp_path)
    for day in range(1, 26):
        message = Message(id=new_id("msg"), role="user", content=f"of day {day}")
        saved_conversation.save([message], tmp_path / f"conversation_202601{day:02}_000000.json")
    async with talking() as talk:
        talk.screen.pick = 2
        await talk.say("/load")
        offered = talk.screen.all("choices")[0].split("\n")[1:]
        assert len(offered) == 20 and offered[0].startswith("conversation_20260125")
        assert talk.session.place.loaded[0].content == "of day 23"


async def test_a_conversation_is_picked_and_continued() -> None:
    """/resume and /open offer the conversations; where nobody can be asked they say what to do instead."""
    async with talking() as talk:
        old = talk.gateway.add_conversation("work", [Message(id="m1", role="user", content="before")], "Old")
        await talk.say("/resume")
        assert "/open NUMBER|ID" in talk.screen.all("error")[0]
        talk.screen.pick = 0
        await talk.say("/open", "go on")
        assert talk.gateway.sent[-1].conversation == old and "before" in talk.screen.all("message")


async def test_words_are_found_in_the_conversation() -> None:
    """In any case of letters, in messages and results, with who said them."""
    async with talking() as talk:
        await talk.say("Plant the BEANS", "and peas", "/find beans", "/find turnips", "/find")
        notes = talk.screen.all("note")
        found = next(note for note in notes if "BEANS" in note).split("\n")
        assert len(found) == 2 and "you" in found[0] and "agent" in found[1]
        assert "Nothing in this conversation has 'turnips'." in notes and len(talk.screen.all("error")) == 1


async def test_a_file_that_cannot_be_sent_stops_the_message(tmp_path: Path) -> None:
    """An empty file: the sentence says so, and nothing is sent."""
    (tmp_path / "empty.txt").touch()
    async with talking() as talk:
        await talk.say(f"Read @{tmp_path / 'empty.txt'}")
        assert talk.gateway.sent == [] and "is empty. Nothing was sent." in talk.screen.all("error")[0]


def test_mentions_name_files_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders, people, addresses and missing files stay text; a sentence may end right after a mention."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a b.md").write_text("x")
    (tmp_path / "c.md").write_text("x")
    (tmp_path / "folder").mkdir()
    text = 'See @c.md, @"a b.md" and @c.md. Not me@c.md, @anna, @folder, @gone.md, @' + "x" * 5_000
    assert [str(one.path) for one in mentioned_files(text)] == ["c.md", "a b.md"]


def test_pasted_paths_become_mentions(tmp_path: Path) -> None:
    """As terminals paste them: quoted, with backslashes, as an address. Other pastes stay as they are."""
    file = tmp_path / "my picture.png"
    file.write_bytes(b"x")
    mention = f'@"{file}" '
    assert [
        mention_of_paste(text)
        for text in (
            f"'{file}'",
            str(file).replace(" ", "\\ "),
            f"file://{str(file).replace(' ', '%20')}\n",
            str(file),
        )
    ] == [mention] * 4
    assert [
        mention_of_paste(text) for text in ("hello", "a.md", "/no/such", "", "one\ntwo", f"see {file}")
    ] == [""] * 6


def test_the_best_match_comes_first() -> None:
    """Words as they are come before letters in their order; what has neither does not match."""
    texts = ["src/data/base.py", "database.py", "README", "a d b"]
    assert best_matches("database", texts) == [1, 0]
    assert best_matches("  ", texts) == [0, 1, 2, 3]


def test_a_diff_in_two_columns_keeps_every_character() -> None:
    """A long line goes on below; unequal numbers of lines leave cells empty; wide characters keep the columns."""
    diff = "--- a\n+++ a\n@@ -1,3 +1,2 @@\n-" + "x" * 90 + "\n-two\n+漢字\n same\n"
    rows = two_columns(diff, 100, lambda text, tone: text).split("\n")
    assert rows[3:6] == [f"│ -{'x' * 46} │ +漢字", f"│ {'x' * 44:<47} │", f"│ -two{'':<43} │"]
    assert rows[6] == f"│  same{'':<42} │  same"


def test_lines_are_cut_by_columns() -> None:
    """A character of two columns counts as two."""
    assert (fit("漢字漢字", 5), fit("ab  c", 5)) == ("漢字…", "ab  c")


def test_every_command_has_a_line_in_the_help() -> None:
    """MN-F28, MB-F8: all of them are there, each with its line."""
    named = {command.name for command in COMMANDS if command.help}
    assert {
        "config",
        "params",
        "mcp",
        "skills",
        "clear",
        "memory",
        "plan",
        "save",
        "load",
        "create-block",
    } <= named
    assert all(len(command.help) < 60 for command in COMMANDS)


def test_the_time_of_saved_files_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The menu of /load shows when each was saved."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "conversation_20260101_000000.json").write_text("{}")
    [(path, at)] = saved_conversation.saved_files()
    assert path.name == "conversation_20260101_000000.json" and at <= datetime.now(UTC)


async def test_a_pipe_chooses_no_files(tmp_path: Path) -> None:
    """What comes through a pipe was not typed by a person: a mention in it is text."""
    secret = tmp_path / "secret.txt"
    secret.write_text("key")
    message = SendMessage(content=f"see @{secret}")
    sent, names = await MessageFiles(mentions=False).with_files(message, NoAbilities)
    assert (sent, names) == (message, ())
    _, names = await MessageFiles().with_files(message, NoAbilities)
    assert names == ("secret.txt",)
