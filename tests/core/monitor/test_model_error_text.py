"""Why a model did not answer, for everyone who may see the turn: nothing that belongs to others is in it."""

import time
from base64 import b64encode
from urllib.parse import quote

import pytest

from trunkline._util.secrets import REDACTION_MARK
from trunkline._util.secrets.log_redactor import LogRedactor
from trunkline.errors import ErrorCode, ModelError
from trunkline.workers.monitor.model_errors import MAX_LINE_CHARS, ModelErrorFormatter

KEY = "sk-" + "a1B2c3D4e5F6" * 100
HIDDEN = {
    "cannot reach llm.corp.museum or gpu7.rack.xyz": ("museum", "xyz", "gpu7", "corp"),
    "at host-7.firma.versicherung:8080": ("host-7", "versicherung", "8080"),
    "no route to modell.фирма.рф and api.xn--80ak6aa92e.xn--p1ai": ("фирма", "modell", "xn--"),
    "mail to ana@firma.versicherung or root@gpu7": ("ana", "versicherung", "root", "gpu7"),
    "File '/home/ana/My Documents/keys.txt' is missing": ("ana", "Documents", "keys"),
    "open /home/ana/My Documents/secret plans/key.txt failed": ("ana", "Documents", "plans", "key.txt"),
    "open C:\\Users\\Ana Meier\\key.txt failed": ("Ana", "Meier", "key.txt"),
    "in /home/ana/My\\ Files/x.pem": ("ana", "Files", "x.pem"),
    "see file:///home/ana/My Docs/a.txt": ("ana", "Docs", "a.txt"),
    "\\\\server\\share of Ana\\key.txt": ("server", "Ana", "key.txt"),
    f"Incorrect API key provided: {KEY}": (KEY[:12], KEY[-12:]),
    f"{'word ' * 50}{KEY} end": (KEY[:12], KEY[-12:]),
    f"{'word ' * 399}{KEY} end": (KEY[:12], KEY[-12:]),
    "Zz9" * 400: ("Zz9Zz9",),
}


def why(detail: str) -> str:
    """The line."""
    return ModelErrorFormatter(LogRedactor({})).describe(
        ModelError(ErrorCode.PROVIDER_ERROR, "refused", detail), "openai/m"
    )


@pytest.mark.parametrize("before", [b"", b"u", b"me", b"user:"])
def test_a_key_is_hidden_in_each_form_that_a_vendor_quotes(before: bytes) -> None:
    """As it is, as a part of a URL, and in the header of Basic authentication."""
    key = "zq7/ocean kettle+harbour=ä?>"
    redactor = LogRedactor({"MODEL_KEY": key, "OTHER_KEY": "\udcff" * 9})
    basic = b64encode(before + key.encode()).decode()
    text = (
        f"key {key} url {quote(key)} {quote(key, safe='')} basic {basic} {basic.translate({43: 45, 47: 95})}"
    )
    shown = redactor.redact(text)
    assert "ocean" not in shown and "kettle" not in shown
    assert basic[4:-6] not in shown
    assert all(len(word.replace(REDACTION_MARK, "")) <= 12 for word in shown.partition("basic")[2].split())


def test_the_text_after_an_address_stays_apart_from_it() -> None:
    """The adapter's own advice follows the vendor's text after a semicolon."""
    assert "See [address]; check api_key" in why("See https://vendor.example/keys; check api_key")


@pytest.mark.parametrize("detail", HIDDEN)
def test_no_address_path_or_key_is_shown(detail: str) -> None:
    """This holds for any top-level domain, with blanks, and beyond the length that is searched."""
    reported = why(detail)
    assert [part for part in HIDDEN[detail] if part in reported] == []
    assert len(reported) <= MAX_LINE_CHARS + 2


@pytest.mark.parametrize(
    "detail",
    [
        "HTTP 404: the model gpt-4.1-mini does not exist",
        "HTTP 400: messages.0.content must be a string, tools.1.function.name is too long",
        "openai.RateLimitError: try again in 2.5 s",
        "qwen2.5-coder is not loaded, e.g. after a restart",
        "temperature 0.7 and/or top_p are not supported",
        "no usable AWS region; set region in [adapters.bedrock], or AWS_REGION",
        "no variable of keys in [plugins.keys.pools.openai] is set: OPENAI_KEY_1",
    ],
)
def test_helpful_error_text_is_kept(detail: str) -> None:
    """Names of models, fields of the request, errors, numbers."""
    assert detail in why(detail)


def test_a_panic_blames_no_provider() -> None:
    """No provider was asked, so the line is Trunkline's own sentence."""
    sentence = "Everything was stopped by panic. Nothing starts until a person releases it: trunkline panic --release"
    error = ModelError(ErrorCode.PANIC, "refused", sentence)
    assert ModelErrorFormatter(LogRedactor({})).describe(error, "openai/gpt") == sentence


def test_a_long_hostile_text_is_handled_quickly() -> None:
    """A turn waits for the line."""
    began = time.monotonic()
    for text in (
        "a." * 50_000,
        "/a " * 50_000,
        "C:\\a " * 50_000,
        "'/" * 50_000,
        "@" * 50_000,
        "a " * 50_000 + "/",
    ):
        why(text)
    assert time.monotonic() - began < 5
