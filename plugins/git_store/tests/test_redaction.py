"""Secrets do not get into memory, and what only looks like one stays as it is (RLM-T15, C13)."""

import json
import time
from pathlib import Path

import pytest

from trunkline._util.secrets.redactor import Redactor
from trunkline.contracts.conversations.messages import AppendConversation, Message
from trunkline.contracts.memory.chunk import Layer
from trunkline.contracts.memory.chunks import Remember
from trunkline.contracts.memory.store import Change
from trunkline.workers.memory.change_rules import RedactionRule
from trunkline_bus import Scope

from .chunks.conftest import chunks_at

REDACTION = RedactionRule(Redactor())
THREE = "api_key=ABC123 token: qwerty password=swordfish"


@pytest.mark.anyio
@pytest.mark.parametrize("layer", ["project_agent", "project_global", "user_agent", "user_global"])
async def test_rlm_t15_in_every_layer(tmp_path: Path, layer: Layer) -> None:
    """RLM-T15: three secrets become three marks, in the file and in recalled text."""
    async with chunks_at(tmp_path) as chunks:
        block = "main" if layer.startswith("project") else None
        request = Remember(content=THREE, actor="owner", conversation_id="c", block=block, layer=layer)
        (chunk,) = (await chunks.writer.remember(request, Scope())).chunk_ids
        held = await chunks.get(chunk, actor="owner", block=block)
        assert held is not None
        assert held.content == "api_key=[REDACTED] token: [REDACTED] password=[REDACTED]"
        assert held.layer == layer
        assert b"swordfish" not in (tmp_path / "memory" / held.path).read_bytes()


@pytest.mark.anyio
async def test_rlm_t15_in_every_write_of_memory(tmp_path: Path) -> None:
    """C13: files, edits and conversations too; a conversation stays whole, and its repeat is still known as one."""
    async with chunks_at(tmp_path) as chunks:
        store = chunks.store
        await store.change(Change({"notes/a.md": THREE.encode()}, actor="agent", reason=""))
        await store.edit("notes/a.md", "api_key", "secret: hunter2\napi_key", actor="agent", reason="")
        assert (await store.read("notes/a.md")).content.count("[REDACTED]") == 4
        said = Message(id="m1", role="user", content=f'My login is {THREE} "quoted"')
        more = Message(
            id="m2", role="assistant", content="I shall keep that secret: the garden gate is blue."
        )
        for messages in ((said,), (said, more)):
            append = AppendConversation(block="main", conversation="c1", messages=messages, actor="gateway")
            await store.append_conversation(append)
        stored = await store.load_conversation("main", "c1", after=0)
        assert [one.id for one in stored.messages] == ["m1", "m2"]
        assert stored.messages[0].content.count("[REDACTED]") == 3
        assert stored.messages[0].content.endswith('"quoted"')
        assert stored.messages[1].content == more.content
        assert b"swordfish" not in b"".join(
            file.read_bytes() for file in (tmp_path / "memory" / "blocks").rglob("*") if file.is_file()
        )


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("API_KEY = abc123", "API_KEY = [REDACTED]"),
        ("OPENAI_API_KEY=abc123def", "OPENAI_API_KEY=[REDACTED]"),
        ('"password": "s3cr3t!, with comma"', '"password": "[REDACTED]"'),
        ('{\\"token\\": \\"abcdef\\", \\"x\\": 1}', '{\\"token\\": \\"[REDACTED]\\", \\"x\\": 1}'),
        ("client_secret: 'abc def'", "client_secret: '[REDACTED]'"),
        ("**Password:** hunter2", "**Password:** [REDACTED]"),
        ("the api key: abc123", "the api key: [REDACTED]"),
        ("url?token=abcdef&x=1", "url?token=[REDACTED]&x=1"),
        ("private_key=abcdef", "private_key=[REDACTED]"),
        ("Authorization: Bearer abcdefghijklmnopqrstuvwxyz", "Authorization: Bearer [REDACTED]"),
        (
            "accessToken = 'a1b2c3', clientSecret=a1b2c3",
            "accessToken = '[REDACTED]', clientSecret=[REDACTED]",
        ),
        ("SECRET_KEY=a1b2c3", "SECRET_KEY=[REDACTED]"),
        ("aws_secret_access_key = a1b2c3/d4", "aws_secret_access_key = [REDACTED]"),
        ("password:            a1b2c3", "password:            [REDACTED]"),
        ("password:\u00a0a1b2c3 token：a1b2c3", "password:\u00a0[REDACTED] token：[REDACTED]"),
        ('{"password":\n  "a1b2c3"}', '{"password":\n  "[REDACTED]"}'),
        ('token = """a1b2c3"""', 'token = """[REDACTED]"""'),
        ("password=a1b2c3 (the old one)", "password=[REDACTED] (the old one)"),
        ("postgres://bob:a1b2c3@db/x", "postgres://bob:[REDACTED]@db/x"),
        ("eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSMeK is mine", "[REDACTED] is mine"),
        ("use sk-abcdefghijklmnopqrstuvwx now", "use [REDACTED] now"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----\nafter",
            "[REDACTED]\nafter",
        ),
    ],
)
def test_a_value_with_the_name_of_a_secret_is_redacted(text: str, cleaned: str) -> None:
    """This holds for any notation: environment, JSON within JSON, Markdown, addresses, headers, key files."""
    assert REDACTION.redact(text) == cleaned
    assert REDACTION.redact(cleaned) == cleaned


@pytest.mark.parametrize(
    "piece",
    [
        "a_",
        "a-",
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN ",
        "eyJ-",
        "secret_",
        "password=",
        "token='",
        "://a:",
    ],
)
def test_any_text_is_redacted_in_linear_time(piece: str) -> None:
    """Any text is scanned in one pass: twenty times the length does not take hundreds of times as long."""
    took = []
    for count in (1_250, 25_000):
        begun = time.process_time()
        REDACTION.redact(piece * count)
        took.append(time.process_time() - begun)
    assert took[1] < 100 * took[0] + 0.5


@pytest.mark.parametrize(
    "text",
    [
        "The password is in the safe. Tokens: none were left. The secret: the garden gate.",
        "def login(password: str, token: str | None = None) -> bool: ...",
        "password = os.environ['PASSWORD']\ntoken = get_token()\nsecret = self.secret",
        'token = { env = "NAME" }',
        "api_key=$OPENAI_API_KEY",
        "password: ${PASSWORD}",
        "password = <your password>",
        "api_key=your-api-key",
        "max_tokens: 4096, token: 12",
        '{"token": 42, "tokens": 10, "password": null, "secret": true}',
        "client.connect(password=password, token=access_token)",
        "api_key=[REDACTED]",
        "A tokenizer: it counts. Passwords: two of them. secretary: Anna",
        "password=***",
        "postgres://user:password@host/db and https://host:8080/@bob and ftp://$USER:$PASS@host",
    ],
)
def test_text_without_secrets_is_unchanged(text: str) -> None:
    """Notes and code about secrets survive: words, types, calls, references, numbers, placeholders."""
    assert REDACTION.redact(text) == text


def test_redacted_json_remains_valid_json() -> None:
    """A file that could be parsed can be parsed afterwards, with the secrets' values alone changed."""
    held = {
        "token": 'a"b\\c',
        "nested": json.dumps({"password": 'x "y" z', "note": "token: qwerty\nnext"}),
        "count": 3,
        "secret": ["kept"],
    }
    for text in (json.dumps(held), json.dumps(held, indent=2)):
        cleaned = json.loads(REDACTION.redact(text))
        assert cleaned["token"] == "[REDACTED]"
        assert cleaned["count"] == 3
        assert "qwerty" not in cleaned["nested"]


def test_binary_files_are_kept_unchanged() -> None:
    """Bytes that are not text are kept, and so is the content of a file before it grew."""
    change = Change({"a.bin": b"\xff\xfepassword=swordfish"}, actor="x", reason="")
    assert REDACTION(change) is change
    grown = Change(
        {"a.jsonl": b"password=old1\npassword=new1\n"}, actor="x", reason="", known={"a.jsonl": 14}
    )
    assert REDACTION(grown).files["a.jsonl"] == b"password=old1\npassword=[REDACTED]\n"
