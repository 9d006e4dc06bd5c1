"""No secret appears in a log: not in a message, an extra, a traceback or a chained exception, as text or as JSON."""

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from trunkline.cli.log_format import TerminalFormatter
from trunkline.cli.logs import JsonLinesFormatter
from trunkline.config import load_config
from trunkline.testing.platform import clean_environ
from trunkline.testing.script import Refuse
from trunkline.testing.scripted_provider import ScriptedProvider

KEYS = {
    "a key": "sk-proj-4fZ9mQ2xT7vB1nK8wR5yH3cL6dJ0sA",
    "a key in an address": "https://vendor.example/v1?api_key=9f8e7d6c5b4a39281706f5e4d3c2b1a0",
    "a login in an address": "https://ada:correct-horse-battery@vendor.example/",
    "a header": "authorization: Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJlLW9mLWFkYQ",
    "a value of ours": "the-plain-words-of-our-own-secret",
}
SECRET = {
    "a key in an address": "9f8e7d6c5b4a39281706f5e4d3c2b1a0",
    "a login in an address": "correct-horse-battery",
    "a header": "c2lnbmF0dXJlLW9mLWFkYQ",
}


@pytest.mark.parametrize(
    "form", [TerminalFormatter("%(message)s"), JsonLinesFormatter()], ids=["text", "json"]
)
@pytest.mark.parametrize("kind", KEYS)
def test_keys_are_redacted_on_every_path_into_a_log_line(
    kind: str, form: logging.Formatter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The paths include an error that is the cause of another one, and the extra fields."""
    monkeypatch.setenv("OUR_API_KEY", KEYS["a value of ours"])
    said = KEYS[kind]
    try:
        try:
            raise ValueError(f"401: {said}")
        except ValueError as cause:
            raise RuntimeError(f"refused ({said})") from cause
    except RuntimeError:
        record = logging.makeLogRecord(
            {"msg": "failed: %s", "args": (said,), "exc_info": sys.exc_info(), "body": {"error": [said]}}
        )
    line = form.format(record)
    assert SECRET.get(kind, said) not in line and "[REDACTED]" in line
    assert "failed: " in line and "RuntimeError" in line


def test_a_key_echoed_by_a_vendor_is_not_logged(tmp_path: Path) -> None:
    """A vendor answers with the key that it was sent, as OpenAI does: no output and no file of the home has it."""
    key = "sk-proj-4fZ9mQ2xT7vB1nK8wR5yH3cL6dJ0sA"
    refuses = (Refuse(status=401, code="invalid_api_key", message=f"Incorrect API key provided: {key}."),)
    with ScriptedProvider(lambda request: refuses) as provider:
        settings = f'[adapters.openai]\nbase_url = "{provider.url}"\nmodel = "scripted"\napi_key = {{ env = "MINE" }}\n'
        (tmp_path / "trunkline.toml").write_text(
            f'{settings}[gateway]\nport = 0\n[telemetry]\nlog_level = "debug"\n'
        )
        done = subprocess.run(
            [sys.executable, "-m", "trunkline.cli.main", "say", "hello"],
            env={**clean_environ(), "TRUNKLINE_HOME": str(tmp_path), "MINE": key},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert (
            provider.answer_requests
            and provider.answer_requests[0].headers["authorization"] == f"Bearer {key}"
        )
    assert key not in done.stdout + done.stderr
    logs = "".join(file.read_text() for file in (tmp_path / "logs").iterdir())
    assert "Incorrect API key provided: [" in logs
    for file in (file for file in tmp_path.rglob("*") if file.is_file()):
        assert key.encode() not in file.read_bytes(), file


def test_configured_secrets_are_redacted_in_every_form(tmp_path: Path) -> None:
    """A secret of plain words in a variable of a plain name, and the token of the home."""
    (tmp_path / "trunkline.toml").write_text('[adapters.openai]\napi_key = { env = "MINE" }\nmodel = "m"\n')
    (tmp_path / "token").write_text("plain-words-of-a-token\n")
    config = load_config(tmp_path, environ={})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINE", "my plain secret words")
        for form in (TerminalFormatter("%(message)s", config=config), JsonLinesFormatter(config=config)):
            said = {"msg": "sent my plain secret words and plain-words-of-a-token on"}
            line = form.format(logging.makeLogRecord(said))
            assert "plain" not in line and line.count("[REDACTED]") == 2
