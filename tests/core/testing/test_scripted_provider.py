"""The scripted provider implements the real protocols: the official client and curl understand it."""

import json
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from trunkline.testing.scripted_provider import ScriptedProvider, provider_process

WITHIN = 10.0
TOOLS: list[Any] = [
    {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
]


@pytest.fixture
def provider() -> Iterator[ScriptedProvider]:
    with ScriptedProvider(models=("one", "two")) as serving:
        yield serving


@pytest.fixture
def client(provider: ScriptedProvider) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=provider.url, api_key="any", max_retries=0) as made:
        yield made


def user(text: str) -> list[Any]:
    return [{"role": "user", "content": text}]


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)


def test_the_official_client_lists_the_models(client: openai.OpenAI) -> None:
    """GET /models."""
    assert [model.id for model in client.models.list()] == ["one", "two"]


def test_the_official_client_reads_a_chat_stream(client: openai.OpenAI) -> None:
    """Text, finish reason and usage."""
    with client.chat.completions.stream(
        model="one", messages=user("slow:3:1"), stream_options={"include_usage": True}
    ) as stream:
        completion = stream.get_final_completion()
    assert completion.choices[0].message.content == "word-1 word-2 word-3"
    assert completion.choices[0].finish_reason == "stop"
    assert completion.usage is not None
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (1, 3)


def test_the_official_client_runs_a_tool_in_a_chat(client: openai.OpenAI) -> None:
    """Parallel calls, streamed in pieces; then their results are quoted."""
    messages = user('say:Wait. ;; parallel:look {"at": "sea"} look {"at": "sky"}')
    with client.chat.completions.stream(model="one", messages=messages, tools=TOOLS) as stream:
        message = stream.get_final_completion().choices[0].message
    assert message.content == "Wait."
    assert message.tool_calls is not None
    assert [json.loads(call.function.arguments) for call in message.tool_calls] == [
        {"at": "sea"},
        {"at": "sky"},
    ]
    results = [{"role": "tool", "tool_call_id": call.id, "content": call.id} for call in message.tool_calls]
    answer = client.chat.completions.create(
        model="one",
        messages=[*messages, message.model_dump(exclude_none=True), *results],  # type: ignore[list-item]
    )
    assert answer.choices[0].message.content == "look said: call_1_0\nlook said: call_1_1"


def test_the_official_client_reads_a_responses_stream(client: openai.OpenAI) -> None:
    """Reasoning, text and calls as items."""
    program = 'think:Hm. ;; say:Wait. ;; parallel:look {"at": "sea"} look {}'
    with client.responses.stream(model="one", input=program) as stream:
        response = stream.get_final_response()
    assert response.output_text == "Wait."
    assert [item.type for item in response.output] == [
        "reasoning",
        "message",
        "function_call",
        "function_call",
    ]
    assert response.usage is not None
    assert response.usage.output_tokens == 2


def test_the_official_client_gets_complete_answers(client: openai.OpenAI) -> None:
    """Without a stream, over both protocols."""
    chat = client.chat.completions.create(model="one", messages=user("say:a b"))
    response = client.responses.create(model="one", input="say:a b ;; call:look {}")
    assert (chat.choices[0].message.content, chat.usage and chat.usage.completion_tokens) == ("a b", 2)
    assert (response.output_text, response.output[-1].type) == ("a b", "function_call")


@pytest.mark.parametrize(
    ("program", "error"),
    [
        ("status:401", openai.AuthenticationError),
        ("status:429", openai.RateLimitError),
        ("status:500", openai.InternalServerError),
        ("overflow", openai.BadRequestError),
        ("cut:2", openai.APIConnectionError),
        ("malformed", json.JSONDecodeError),
    ],
)
def test_faults_are_the_clients_errors(client: openai.OpenAI, program: str, error: type[Exception]) -> None:
    """Each has the form that the official client reports."""
    with pytest.raises(error):
        list(client.chat.completions.create(model="one", messages=user(program), stream=True))


def test_requests_can_be_read_by_other_processes(provider: ScriptedProvider, client: openai.OpenAI) -> None:
    """GET /_requests lists it, DELETE forgets it."""
    client.chat.completions.create(model="one", messages=user("say:x"))
    [request] = httpx.get(f"{provider.address}/_requests").json()
    assert (request["method"], request["path"], request["outcome"]) == (
        "POST",
        "/v1/chat/completions",
        "finished",
    )
    assert request["body"]["messages"] == user("say:x")
    assert request["headers"]["authorization"] == "Bearer any"
    httpx.delete(f"{provider.address}/_requests")
    assert provider.requests == []


def test_a_running_request_is_deleted_once_its_bill_is_known(provider: ScriptedProvider) -> None:
    """DELETE leaves it, so that whoever collects the requests sees each with what is billed."""
    listed = f"{provider.address}/_requests"
    body = {"model": "one", "stream": True, "messages": user("slow:1000:20")}
    with httpx.stream("POST", f"{provider.url}/chat/completions", json=body) as answer:
        received = answer.iter_bytes()
        next(received)
        assert httpx.delete(listed).json() == []
    until(lambda: provider.requests[0].outcome == "abandoned")
    (ended,) = httpx.delete(listed).json()
    assert ended["billed"][0] == 1 and ended["billed"][1] < 1_000
    assert httpx.get(listed).json() == []


def test_a_disconnected_client_is_noticed(provider: ScriptedProvider) -> None:
    """An answer without a reader is marked abandoned."""
    body = {"model": "one", "stream": True, "messages": user("stall")}
    with httpx.stream("POST", f"{provider.url}/chat/completions", json=body) as response:
        received = response.iter_bytes()
        next(received)
        assert provider.requests[0].outcome == "running"
    until(lambda: provider.requests[0].outcome == "abandoned")


def test_a_long_answer_arrives_whole(provider: ScriptedProvider) -> None:
    """No byte is lost when a large answer is sent to a slow reader."""
    body = {"model": "one", "stream": True, "messages": user("slow:20000:0")}
    lines = httpx.post(f"{provider.url}/chat/completions", json=body, timeout=60).text.split("\n\n")
    assert lines[-2] == "data: [DONE]"
    assert sum("word-" in line for line in lines) == 20000


def test_unknown_paths_are_not_found(provider: ScriptedProvider) -> None:
    """Another path, another method, a body that is no object."""
    assert httpx.get(f"{provider.address}/").status_code == 404
    assert httpx.get(f"{provider.url}/chat/completions").status_code == 404
    assert httpx.post(f"{provider.url}/chat/completions", content=b"{").status_code == 404


def test_the_agent_loops_contract_is_served(provider: ScriptedProvider) -> None:
    """POST /engine/chat: tools are run by the server, the events are the contract's."""
    body = {"messages": user('call:look {"at": "sea"}'), "metadata": {"correlation_id": "r"}}
    events = httpx.post(f"{provider.address}/engine/chat", json=body).text.split("\n\n")
    kinds = [event.partition("\n")[0].removeprefix("event: ") for event in events if event]
    assert kinds[:2] == ["tool-call", "tool-result"]
    assert set(kinds[2:-1]) == {"text-delta"}
    assert kinds[-1] == "done"


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl_reads_it(provider: ScriptedProvider) -> None:
    """A client that is independent of this project."""
    body = json.dumps({"model": "one", "stream": True, "messages": user("say:hello")})
    command = ["curl", "-sN", "--max-time", "10", "-d", body, f"{provider.url}/chat/completions"]
    assert '"content": "hello"' in subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_the_provider_runs_as_its_own_process(tmp_path: Path) -> None:
    """With programs from a file, and gone when its user is."""
    script = tmp_path / "programs.json"
    script.write_text('["say:first", "say:second"]')
    with provider_process("--script", str(script)) as url:
        client = openai.OpenAI(base_url=url, api_key="any", max_retries=0)
        answers = [client.chat.completions.create(model="m", messages=user("x")) for _ in range(2)]
        assert [answer.choices[0].message.content for answer in answers] == ["first", "second"]
    with pytest.raises(openai.APIConnectionError):
        client.chat.completions.create(model="m", messages=user("x"))


def test_clients_that_break_off_do_not_end_the_provider(
    provider: ScriptedProvider, client: openai.OpenAI
) -> None:
    """A connection that is reset while something is being said on it is that connection's affair."""
    body = json.dumps({"model": "one", "stream": True, "messages": user("slow:2000:1")}).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)
    sockets = [socket.create_connection(("127.0.0.1", httpx.URL(provider.url).port or 0)) for _ in range(60)]
    for raw in sockets:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # close resets it
        raw.sendall(head + body)
    for raw in sockets:
        raw.recv(100)
    for raw in sockets:
        raw.close()
    until(lambda: all(request.outcome == "abandoned" for request in provider.requests))
    assert [model.id for model in client.models.list()] == ["one", "two"]


def test_a_request_sent_before_the_answer_ends_is_answered_next() -> None:
    """On the same connection, in order: a client that received the end may send before the server is ready to read."""
    with ScriptedProvider() as provider:
        where = httpx.URL(provider.url)
        with socket.create_connection((where.host, where.port or 80), timeout=20) as client:
            client.sendall(raw("slow:3:50") + raw("say:second"))
            heard = b""
            while heard.count(b"[DONE]") < 2:
                part = client.recv(65536)
                assert part, heard
                heard += part
        assert heard.index(b"word-3") < heard.index(b"second")


def raw(program: str) -> bytes:
    """A request as it goes over the wire."""
    asked = {"model": "scripted", "stream": True, "messages": [{"role": "user", "content": program}]}
    body = json.dumps(asked).encode()
    return b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b" % (
        len(body),
        body,
    )
