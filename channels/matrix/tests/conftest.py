"""The tests of the Matrix channel are run as the account of the scripted homeserver."""

import pytest

from .homeserver import TOKEN


@pytest.fixture(autouse=True)
def _token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MATRIX_ACCESS_TOKEN", TOKEN)
