"""ProgramRequest: no backend receives an invalid request, however the request is made."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from trunkline.contracts.sandbox.program_request import BASE_ENV, check_program
from trunkline.errors import ToolError

REQUEST = check_program(["ls"], workspace=Path("/w"), env={"LANG": "de"}, folder="./src/")


def test_a_request_has_a_normal_form() -> None:
    """Missing variables are added, and the folder is relative to the workspace."""
    assert (REQUEST.argv, REQUEST.folder) == (("ls",), "src")
    assert REQUEST.env == {**BASE_ENV, "LANG": "de"}
    assert REQUEST.working_directory == "/workspace/src"
    assert check_program(["ls"], workspace=None, env={}, folder=".").working_directory == "/workspace"


@pytest.mark.parametrize(
    "invalid",
    [
        {"argv": ()},
        {"argv": ("ls", "a\0b")},
        {"env": {"A=B": "c"}},
        {"env": {"A": "x" * 200_000}},
        {"folder": "/etc"},
        {"folder": "src/../.."},
        {"workspace": None},
        {"read_only": {"/proc/self": Path("/w")}},
    ],
    ids=lambda invalid: next(iter(invalid)),
)
def test_an_invalid_request_cannot_be_made(invalid: dict[str, Any]) -> None:
    """A tool that changes a checked request, or makes one itself, is refused as ``check_program`` refuses it."""
    with pytest.raises(ToolError) as refused:
        replace(REQUEST, **invalid)
    assert refused.value.kind in ("invalid_arguments", "too_large")
