"""send_file: what the person gets, and what is refused."""

from pathlib import Path

import pytest
from file_calls import refusal, run

from trunkline.api.testing import ScriptedOutgoingFiles
from trunkline.testing.contexts import tool_context
from trunkline_files import outgoing_tool


def test_the_person_gets_the_bytes_of_the_file(tmp_path: Path) -> None:
    """The content arrives unchanged, and the result names the file and its size."""
    (tmp_path / "plan.bin").write_bytes(b"\0\xff plan")
    outgoing = ScriptedOutgoingFiles()
    text = run(outgoing_tool.send_file, tmp_path, "plan.bin", given=tool_context(tmp_path, outgoing=outgoing))
    assert outgoing.sent == {"plan.bin": b"\0\xff plan"} and "plan.bin (7 bytes)" in text


@pytest.mark.parametrize(
    ("path", "why"), [("folder", "is a folder"), ("absent", "There is no 'absent'"), ("../out", "")]
)
def test_a_path_without_a_file_is_refused(tmp_path: Path, path: str, why: str) -> None:
    """The refusal says what is there; nothing is given."""
    (tmp_path / "folder").mkdir()
    outgoing = ScriptedOutgoingFiles()
    given = tool_context(tmp_path, outgoing=outgoing)
    assert why in refusal(outgoing_tool.send_file, tmp_path, path, given=given) and not outgoing.sent


def test_a_file_beyond_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of more than the limit is not read further."""
    monkeypatch.setattr(outgoing_tool, "MAX_OUTGOING_BYTES", 5)
    (tmp_path / "large").write_bytes(b"123456")
    given = tool_context(tmp_path, outgoing=ScriptedOutgoingFiles())
    assert "larger than" in refusal(outgoing_tool.send_file, tmp_path, "large", given=given)


def test_without_a_person_the_tool_says_so(tmp_path: Path) -> None:
    """On another host there is nobody to give a file to."""
    (tmp_path / "a").write_bytes(b"a")
    assert "from here" in refusal(outgoing_tool.send_file, tmp_path, "a")
