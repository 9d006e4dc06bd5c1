"""The password of the mailbox, for every test of the e-mail channel."""

import pytest

from .mail_store import PASSWORD


@pytest.fixture(autouse=True)
def _password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMAIL_PASSWORD", PASSWORD)
