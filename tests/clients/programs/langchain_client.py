"""langchain-openai on both APIs."""

from typing import Any, Literal

from cases import BLOCK, KEY, LOOK, PICTURE, REPORT, URL, run
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel


class Report(BaseModel):
    """What the client wants to know."""

    sea: Literal["calm", "rough"]
    waves: int


@tool
def weather(town: str) -> str:
    """The weather somewhere."""
    return f"rain in {town}"


def model(*, responses: bool = False, **more: Any) -> ChatOpenAI:
    return ChatOpenAI(
        model=BLOCK, base_url=URL, api_key=KEY, use_responses_api=responses, max_retries=0, **more
    )


def answer() -> Any:
    said = model().invoke("say:Hello there.")
    return [said.text, said.usage_metadata["total_tokens"] > 0, said.response_metadata["finish_reason"]]


def answer_by_responses() -> Any:
    said = model(responses=True).invoke("say:Hello there.")
    return [said.text, said.usage_metadata["total_tokens"] > 0, said.response_metadata["status"]]


def _streamed(client: ChatOpenAI) -> Any:
    pieces = list(client.stream("slow:12:10"))
    whole = pieces[0]
    for piece in pieces[1:]:
        whole += piece
    return [whole.text.split()[-1], len(pieces) > 3, whole.usage_metadata["output_tokens"]]


def stream() -> Any:
    return _streamed(model(stream_usage=True))


def stream_by_responses() -> Any:
    return _streamed(model(responses=True))


def _loop(client: Any) -> Any:
    bound = client.bind_tools([weather])
    messages: list[Any] = [HumanMessage(LOOK)]
    asked = bound.invoke(messages)
    messages += [asked, *(weather.invoke(call) for call in asked.tool_calls)]
    return [asked.text, len(asked.tool_calls), bound.invoke(messages).text]


def tools() -> Any:
    return _loop(model())


def tools_by_responses() -> Any:
    return _loop(model(responses=True))


def tools_by_responses_with_server_state() -> Any:
    return _loop(model(responses=True, use_previous_response_id=True))


def tools_in_a_stream() -> Any:
    """The accumulation of chunks finds the call."""
    pieces = list(model().bind_tools([weather]).stream(LOOK))
    whole = pieces[0]
    for piece in pieces[1:]:
        whole += piece
    return [[call["name"], call["args"]] for call in whole.tool_calls]


def structured_output_by_schema() -> Any:
    return model().with_structured_output(Report, method="json_schema").invoke(f"say:{REPORT}").model_dump()


def structured_output_by_schema_and_responses() -> Any:
    client = model(responses=True)
    return client.with_structured_output(Report, method="json_schema").invoke(f"say:{REPORT}").model_dump()


def structured_output_by_call() -> Any:
    client = model().with_structured_output(Report, method="function_calling")
    return client.invoke(f"call:Report {REPORT}").model_dump()


def structured_output_by_mode() -> Any:
    return model().with_structured_output(Report, method="json_mode").invoke(f"say:{REPORT}").model_dump()


def pictures() -> Any:
    picture = {"type": "image", "base64": PICTURE, "mime_type": "image/png"}
    message = HumanMessage(content=[{"type": "text", "text": "say:I see."}, picture])
    answers = [model(responses=responses).invoke([message]).text for responses in (False, True)]
    return ["[Attached: image-" in answer for answer in answers]


def vectors() -> Any:
    client = OpenAIEmbeddings(model=BLOCK, base_url=URL, api_key=KEY, check_embedding_ctx_length=False)
    one, other, again = client.embed_documents(["beans", "boats", "beans"])
    return [len(one) > 0, one == again, one == other]


run(
    pictures, vectors, answer, answer_by_responses, stream, stream_by_responses, tools, tools_by_responses,
    tools_by_responses_with_server_state, tools_in_a_stream, structured_output_by_schema,
    structured_output_by_schema_and_responses, structured_output_by_call, structured_output_by_mode,
)  # fmt: skip
