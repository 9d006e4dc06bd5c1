"""Redaction of single requests and answers, and attacks on it. No platform."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline import ConfigError, Message, ToolCall
from trunkline.api.model import (
    Call,
    DocumentFile,
    Finish,
    ModelError,
    ModelEvent,
    ModelRequest,
    Operation,
    Reasoning,
    ReasoningBlock,
    ReasoningDone,
    ResponseFormat,
    Text,
    ToolChoice,
)
from trunkline.api.tool import ToolSchema
from trunkline_redaction.key_source import KeySource
from trunkline_redaction.middleware import RedactionMiddleware
from trunkline_redaction.placeholders import Placeholders, RestoringStream
from trunkline_redaction.process_redactor import ProcessRedactor
from trunkline_redaction.request_redaction import LEFT_OUT, RequestRedaction
from trunkline_redaction.request_redactor import RequestRedactor
from trunkline_redaction.settings import RedactionSettings

pytestmark = pytest.mark.anyio

KEY = "sk-proj-Zz9canaryAAAABBBBCCCCDDDDEEEEFFFF0123456789"
CUSTOMER = "KD-123456"
SETTINGS = RedactionSettings(enabled=True, patterns={"customer": "KD-[0-9]{6}"})


def user(text: str) -> Message:
    return Message(id="m", role="user", content=text)


def request_of(*messages: Message, **more: Any) -> ModelRequest:
    return ModelRequest(messages=messages, adapter="a", **more)


class Vendor:
    """Records the request, and answers with events that a function makes of its text."""

    def __init__(self, answer: Sequence[ModelEvent] = (Finish(),)) -> None:
        self.answer = answer
        self.requests: list[ModelRequest] = []

    async def ask(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.requests.append(request)
        for event in self.answer:
            yield event


async def exchange(
    request: ModelRequest,
    vendor: Vendor,
    settings: RedactionSettings = SETTINGS,
    keys: KeySource | None = None,
) -> list[ModelEvent]:
    middleware = RedactionMiddleware(ProcessRedactor(settings, keys or KeySource()))
    async with aclosing(middleware(request, vendor.ask)) as events:  # type: ignore[type-var]
        return [event async for event in events]


def placeholder(redactor: RequestRedactor, text: str) -> str:
    redacted, _ = redactor.redact(request_of(user(text)))
    return redacted.messages[0].content


def said(events: Sequence[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, Text))


async def test_nothing_of_a_secret_leaves_in_any_part_of_a_request() -> None:
    """Messages, results, arguments and their keys, tools, formats and partial answers. A value that stands beside a
    name once is replaced everywhere."""
    request = request_of(
        Message(id="s", role="system", content=f"The key is {KEY}."),
        user(f"I am {CUSTOMER}. My password: hunter-Two-9917"),
        Message(
            id="a",
            role="assistant",
            content="",
            tool_calls=(
                ToolCall(
                    id="c",
                    name="login",
                    arguments={"password": 'quote"9917\\x', CUSTOMER: [{"deep": f"x {KEY} y"}]},
                ),
            ),
        ),
        Message(id="r", role="tool", tool_call_id="c", name="login", content="hunter-Two-9917 was accepted"),
        tools=(
            ToolSchema(
                name="login", description=f"For {CUSTOMER}", parameters={"properties": {"p": {"enum": [KEY]}}}
            ),
        ),
        response_format=ResponseFormat(schema={"description": f"of {CUSTOMER}"}),
        partial=f"The customer {CUSTOMER}",
    )
    vendor = Vendor()
    await exchange(request, vendor)
    sent = repr(vendor.requests[0])
    for secret in (KEY, CUSTOMER, "hunter-Two-9917", "quote", "9917"):
        assert secret not in sent, secret
    assert vendor.requests[0].messages[1].content.count("CUSTOMER_") == 1


async def test_the_answer_and_the_arguments_have_the_real_values() -> None:
    """The approval and the tool see them; the vendor's blocks of reasoning stay as they are."""
    keys = KeySource()
    redactor = RequestRedactor(SETTINGS, keys.key)
    key, customer = placeholder(redactor, KEY), placeholder(redactor, CUSTOMER)
    block = ReasoningBlock(vendor="v", model="m", data={"thinking": f"It is {customer}", "signature": "abc"})
    answer = (
        Reasoning(f"About {customer[:5]}"),
        Reasoning(customer[5:]),
        ReasoningDone(block),
        Text(f"Use {key}"),
        Call(
            ToolCall(id="1", name="t", arguments={"url": f"https://x/?k={key}&c={customer}", customer: [key]})
        ),
        Finish(),
    )
    events = await exchange(request_of(user(f"{KEY} {CUSTOMER}")), Vendor(answer), keys=keys)
    assert "".join(event.text for event in events if isinstance(event, Reasoning)) == f"About {CUSTOMER}"
    assert said(events) == f"Use {KEY}"
    (call,) = [event.call for event in events if isinstance(event, Call)]
    assert call.arguments == {"url": f"https://x/?k={KEY}&c={CUSTOMER}", CUSTOMER: [KEY]}
    assert ReasoningDone(block) in events


@given(st.lists(st.integers(1, 7), max_size=40), st.text("CUSTOMER_SKDabcdef0123456789 ", max_size=40))
def test_a_placeholder_that_is_split_anywhere_is_put_back(cuts: list[int], around: str) -> None:
    """However the text is cut, the pieces together are the restored whole, and no piece has a part of a placeholder
    that is complete in the whole."""
    placeholders = Placeholders(b"k")
    name = placeholders.replace("CUSTOMER", CUSTOMER)
    text = f"{around}{name}{around}{name}{name[:9]}"
    stream, pieces, at = RestoringStream(placeholders), [], 0
    for cut in cuts:
        pieces.append(stream.feed(text[at : at + cut]))
        at += cut
    pieces += [stream.feed(text[at:]), stream.finish()]
    assert "".join(pieces) == placeholders.restore(text)
    assert name not in "".join(pieces)
    assert "".join(pieces).count(CUSTOMER) >= 2


async def test_placeholders_that_the_model_invents_stay_as_they_are() -> None:
    """Only those of this request mean something; one of another installation, or a guessed one, does not."""
    foreign = placeholder(RequestRedactor(SETTINGS, b"another key"), CUSTOMER)
    invented = ("CUSTOMER_000000000000", foreign, "SECRET_", "SECRET_zz", "[REDACTED]", foreign.upper())
    answer = (
        Text(" ".join(invented)),
        Call(ToolCall(id="1", name="t", arguments={"a": invented[0]})),
        Finish(),
    )
    events = await exchange(request_of(user(f"{KEY} {CUSTOMER}")), Vendor(answer))
    assert said(events) == " ".join(invented)
    assert Call(ToolCall(id="1", name="t", arguments={"a": invented[0]})) in events


async def test_a_page_cannot_name_a_placeholder() -> None:
    """Text from outside cannot know the placeholder of a secret: it depends on the installation's key and the value."""
    redactor, other = RequestRedactor(SETTINGS, b"one"), RequestRedactor(SETTINGS, b"two")
    assert placeholder(redactor, CUSTOMER) == placeholder(redactor, CUSTOMER)
    assert placeholder(redactor, CUSTOMER) != placeholder(other, CUSTOMER)
    assert placeholder(redactor, CUSTOMER) != placeholder(redactor, "KD-123457")


async def test_nested_secrets_are_one() -> None:
    """A pattern inside of a password, and a placeholder that was sent before: both come back whole."""
    keys = KeySource()
    redactor = RequestRedactor(SETTINGS, keys.key)
    redacted, placeholders = redactor.redact(request_of(user(f"password = Aa9-{CUSTOMER}-tail!")))
    text = redacted.messages[0].content
    assert CUSTOMER not in text and "tail" not in text
    assert placeholders.restore(text) == f"password = Aa9-{CUSTOMER}-tail!"
    again, _ = redactor.redact(request_of(user(text), user(f"password = Aa9-{CUSTOMER}-tail!")))
    assert again.messages[1].content == text


async def test_the_same_text_has_the_same_placeholder_in_every_request() -> None:
    """So that a request begins with the same bytes as the one before it (prompt caches)."""
    redactor = RequestRedactor(SETTINGS, b"key")
    first, _ = redactor.redact(request_of(user(f"I am {CUSTOMER}")))
    second, _ = redactor.redact(request_of(user(f"I am {CUSTOMER}"), user(KEY), user("KD-999999")))
    assert second.messages[0].content == first.messages[0].content
    assert json.dumps(second.messages[0].content) == json.dumps(first.messages[0].content)


async def test_a_signed_block_with_a_secret_is_left_out() -> None:
    """It was written before redaction was on; changing it would break its signature, and sending it would leak."""
    clean = ReasoningBlock(vendor="v", model="m", data={"thinking": "I think.", "signature": f"{KEY * 4}"})
    leaking = ReasoningBlock(
        vendor="v", model="m", data={"thinking": f"It is {CUSTOMER}.", "signature": "abc"}
    )
    message = Message(id="a", role="assistant", content="x", reasoning=(clean, leaking))
    vendor = Vendor()
    await exchange(request_of(user("hello"), message), vendor)
    assert vendor.requests[0].messages[1].reasoning == (clean,)


async def sent(
    request: ModelRequest,
    vendor: Vendor,
    settings: RedactionSettings = SETTINGS,
    keys: KeySource | None = None,
) -> list[ModelEvent]:
    """Return the events of a request that middleware around requests has redacted."""
    if keys is None:
        keys = KeySource()
        keys.is_shared = True
    middleware = RequestRedaction(settings, keys, ProcessRedactor(settings, keys))
    async with aclosing(middleware(request, vendor.ask)) as events:  # type: ignore[type-var]
        return [event async for event in events]


async def ability(
    operation: Operation, *texts: str, settings: RedactionSettings = SETTINGS, keys: KeySource | None = None
) -> list[str]:
    """Return the texts that the vendor of an ability receives, which replies in two parts."""
    vendor = Vendor((Text(""), Text(""), Finish()))
    request = request_of(*map(user, texts), operation=operation)
    assert await sent(request, vendor, settings, keys) == [*vendor.answer], "each part is passed on at once"
    return [message.content for message in vendor.requests[0].messages]


@pytest.mark.parametrize("operation", ["embeddings", "speech"])
async def test_the_texts_of_vectors_and_speech_are_redacted(operation: Operation) -> None:
    """Each of them, and their number and order stay. A text without a secret stays as it is."""
    got = await ability(operation, f"Mr {CUSTOMER} has paid", "nothing here", f"the key is {KEY}")
    assert got[0].startswith("Mr CUSTOMER_") and got[0].endswith(" has paid")
    assert got[1] == "nothing here"
    assert got[2].startswith("the key is SECRET_") and KEY not in got[2]


async def test_a_text_has_the_same_placeholders_in_every_process() -> None:
    """What a text becomes depends on the key only, so a search finds what an earlier process embedded."""
    processes = KeySource(), KeySource()
    for keys in processes:
        keys.key, keys.is_shared = b"k" * 32, True
    text = f"{CUSTOMER} naps"
    first, _ = await ability("embeddings", text, "other text", keys=processes[0])
    assert await ability("embeddings", text, keys=processes[1]) == [first]


async def test_vectors_wait_for_the_shared_key() -> None:
    """With a key of this process alone, vectors that are kept would not be found later. Speech is not kept."""
    with pytest.raises(ModelError, match="key of placeholders") as waits:
        await ability("embeddings", CUSTOMER, keys=KeySource())
    assert waits.value.fault == "unavailable"
    assert CUSTOMER not in (await ability("speech", CUSTOMER, keys=KeySource()))[0]


async def test_recordings_are_refused_unless_permitted() -> None:
    """Nobody can look into them. If they are permitted, the prompt that goes with them is redacted."""
    with pytest.raises(ModelError, match="files = true"):
        await ability("transcription", "beans")
    permitted = RedactionSettings(enabled=True, files=True, patterns=SETTINGS.patterns)
    (prompt,) = await ability("transcription", f"about {CUSTOMER}", settings=permitted)
    assert prompt.startswith("about CUSTOMER_")


async def test_what_is_added_to_a_redacted_call_is_redacted() -> None:
    """What middleware around the call has redacted stays. The placeholder of what was added comes back."""
    keys = KeySource()
    call, _ = ProcessRedactor(SETTINGS, KeySource()).redact(
        request_of(user(f"{CUSTOMER} with the password: hunter2hunter2"))
    )
    (before,) = call.messages
    request, vendor = request_of(before, user("It is KD-654321")), Vendor()
    await sent(request, vendor, keys=keys)
    first, added = (message.content for message in vendor.requests[0].messages)
    assert first == before.content and added.startswith("It is CUSTOMER_")
    echo = Vendor((Text(f"{first} and {added}"), Finish()))
    assert said(await sent(request, echo, keys=keys)) == f"{before.content} and It is KD-654321"


async def test_files_are_refused_unless_permitted() -> None:
    """The owner may permit them. The name of a permitted file is redacted."""
    file = DocumentFile(media_type="application/pdf", name=f"{CUSTOMER}.pdf", data=b"%PDF")
    request, vendor = request_of(Message(id="m", role="user", content="x", documents=(file,))), Vendor()
    with pytest.raises(ModelError, match="files = true"):
        await sent(request, vendor)
    assert vendor.requests == []
    permitted = RedactionSettings(enabled=True, files=True, patterns=SETTINGS.patterns)
    await sent(request, vendor, permitted)
    (document,) = vendor.requests[0].messages[0].documents
    assert document.name.startswith("CUSTOMER_") and document.name.endswith(".pdf")


async def test_files_of_earlier_turns_are_left_out() -> None:
    """A conversation goes on after a refused file, and the model is told."""
    file = DocumentFile(media_type="application/pdf", name="x.pdf", data=b"%PDF")
    old = Message(id="m", role="user", content="x", documents=(file,), turn="turn_1")
    vendor = Vendor()
    await sent(request_of(old, user("and now?"), turn="turn_2"), vendor)
    first, _ = vendor.requests[0].messages
    assert first.documents == () and first.content == f"x\n\n{LEFT_OUT}"
    with pytest.raises(ModelError, match="files = true"):
        await sent(request_of(old, turn="turn_1"), vendor)


async def test_parameters_of_a_request_are_redacted() -> None:
    """A client names them, and some are free texts."""
    vendor = Vendor()
    parameters = {"stop": [CUSTOMER], "seed": 7, "prompt_cache_key": f"of {CUSTOMER}"}
    await exchange(request_of(user("x"), parameters=parameters), vendor)
    left = vendor.requests[0].parameters
    assert left["seed"] == 7 and "KD-" not in json.dumps(left) and set(left) == set(parameters)


@pytest.mark.parametrize("word", ["properties", "description", "additionalProperties", "password", "type"])
async def test_a_text_cannot_break_the_tools(word: str) -> None:
    """A page that says ``password: properties`` is redacted; the schemas of tools and formats keep their words, and so
    do parameters. A vendor would refuse every request of the conversation otherwise."""
    schema = {
        "type": "object",
        "properties": {"secret": {"type": "string", "format": "password", "description": "x"}},
        "required": ["secret"],
        "additionalProperties": False,
    }
    tool, vendor = ToolSchema(name="t", description="", parameters=schema), Vendor()
    page = user(f'{{"password": "{word}", "token": "low"}} password: {word}')
    await exchange(
        request_of(
            page,
            tools=(tool,),
            response_format=ResponseFormat(schema=schema),
            parameters={"reasoning_effort": "low", "truncation": word},
        ),
        vendor,
    )
    (request,) = vendor.requests
    assert request.tools == (tool,) and request.response_format == ResponseFormat(schema=schema)
    assert request.parameters == {"reasoning_effort": "low", "truncation": word}


async def test_escaped_texts_are_redacted() -> None:
    """Many tools return JSON in which letters are escaped, and addresses escape them otherwise."""
    settings = RedactionSettings(enabled=True, patterns={"person": "Jürgen Müller|🦊 Fox"})
    secret = "pä$s+wörd99"
    messages = (
        user(json.dumps({"name": "Jürgen Müller", "nick": "🦊 Fox", "note": '\u0022 "'})),
        user(f"password: {secret}"),
        user(json.dumps(f"It is {secret}")),
        user("https://x.org/?p=p%C3%A4%24s%2Bw%C3%B6rd99"),
        user(r"C:\users\u00e4"),
    )
    vendor = Vendor()
    await exchange(request_of(*messages), vendor, settings)
    name, plain, escaped, address, path = (message.content for message in vendor.requests[0].messages)
    read = json.loads(name)
    assert read["name"].startswith("PERSON_") and read["nick"].startswith("PERSON_")
    assert read["note"] == '\u0022 "'
    assert escaped == f'"It is {plain.removeprefix("password: ")}"' and "rd99" not in escaped
    assert "rd99" not in address and path == messages[-1].content


async def test_an_answer_in_json_stays_json() -> None:
    """What a placeholder stands for is escaped there, so that the text is in the format that was requested."""
    quoted = 'Grace "Amazing" Hopper\\'
    settings = RedactionSettings(enabled=True, patterns={"person": 'Grace "Amazing" Hopper\\\\'})
    keys = KeySource()
    name = placeholder(RequestRedactor(settings, keys.key), quoted)
    assert name.startswith("PERSON_")
    for format in (ResponseFormat(), None):
        vendor = Vendor((Text(f'{{"name": "{name[:9]}'), Text(f'{name[9:]}"}}'), Finish()))
        events = await exchange(request_of(user(quoted), response_format=format), vendor, settings, keys)
        if format is None:
            assert said(events) == f'{{"name": "{quoted}"}}'
        else:
            assert json.loads(said(events)) == {"name": quoted}


async def test_a_secret_that_looks_like_a_placeholder_is_redacted() -> None:
    """Only the labels of this installation make placeholders."""
    vendor = Vendor()
    await exchange(request_of(user("password: BACKUP_0123456789ab")), vendor)
    assert "BACKUP" not in vendor.requests[0].messages[0].content


@pytest.mark.parametrize(
    ("patterns", "reason"),
    [
        ({"customer": "("}, "regular expression"),
        ({"customer": "x*"}, "empty text"),
        ({"secret": "x"}, "label"),
        ({"a b": "x"}, "label"),
    ],
)
def test_patterns_that_cannot_work_are_refused(
    patterns: dict[str, str], reason: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """At the start, with the setting's name; a pattern with backtracking cannot stop a worker, because RE2 has none.
    The error is all that a person sees: RE2 prints nothing itself.
    """
    with pytest.raises(ConfigError, match=reason) as failed:
        RedactionSettings(patterns=patterns)
    assert "b'" not in failed.value.sentence
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("secret", [KEY, CUSTOMER])
@pytest.mark.parametrize("between", [False, True], ids=["next", "with an answer between"])
async def test_a_secret_that_is_cut_between_messages_does_not_leave(secret: str, between: bool) -> None:
    """Wherever it is cut, neither part leaves, and both come back in the answer. A few characters after a part that is
    a key by itself are left: they may be a word."""
    for at in range(1, len(secret)):
        first, second = secret[:at], secret[at:]
        answer = (Message(id="a", role="assistant", content="Go on."),) if between else ()
        request = request_of(user(f"It is {first}"), *answer, user(f"{second} is the rest"))
        redacted, placeholders = RequestRedactor(SETTINGS, b"k").redact(request)
        sent = "".join(message.content for message in redacted.messages if message.role == "user")
        assert f"It is {first}" not in sent, at
        assert f"{second} is the rest" not in sent or (secret is KEY and len(second) < 8), at
        assert [placeholders.restore(one.content) for one in redacted.messages] == [
            one.content for one in request.messages
        ]


async def test_a_copy_that_is_cut_is_recognized_by_the_whole() -> None:
    """A passage ends or begins within a secret that stands elsewhere."""
    request = request_of(
        user("The password: hunter-Two-9917 holds."),
        user("A long passage that ends with hunter-Two-9"),
        user("er-Two-9917 is how this one begins"),
    )
    redacted, _ = RequestRedactor(SETTINGS, b"k").redact(request)
    assert not any("Two" in message.content for message in redacted.messages)


async def test_words_after_a_secret_stay() -> None:
    """The first word of a message is no part of the secret with which the message before it ends."""
    request = request_of(user(f"The key is {KEY}"), user("Yes."), user("my password:"), user("Hello there"))
    redacted, _ = RequestRedactor(SETTINGS, b"k").redact(request)
    assert [message.content for message in redacted.messages][1:] == ["Yes.", "my password:", "Hello there"]


async def test_names_of_tools_and_ids_of_calls_are_redacted() -> None:
    """The vendor reads the same name everywhere, and the call that it makes has the real one."""
    call = ToolCall(id=f"call-{CUSTOMER}", name=f"ask_{CUSTOMER}", arguments={})
    request = request_of(
        Message(id="a", role="assistant", content="", tool_calls=(call,)),
        Message(id="r", role="tool", tool_call_id=call.id, name=call.name, content="ok"),
        tools=(ToolSchema(name=call.name, description="", parameters={}),),
        tool_choice=ToolChoice(mode="required", tools=(call.name,)),
    )
    redacted, _ = RequestRedactor(SETTINGS, KeySource().key).redact(request)
    (made,), result = redacted.messages[0].tool_calls, redacted.messages[1]
    assert CUSTOMER not in repr(redacted)
    assert made.name == result.name == redacted.tools[0].name == redacted.tool_choice.tools[0]
    assert made.id == result.tool_call_id
    keys = KeySource()
    named, _ = RequestRedactor(SETTINGS, keys.key).redact(request)
    vendor = Vendor((Call(ToolCall(id="c2", name=named.tools[0].name, arguments={})), Finish()))
    (answered, *_) = await exchange(request, vendor, keys=keys)
    assert isinstance(answered, Call) and answered.call.name == call.name
