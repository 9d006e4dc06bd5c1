"""The server that the conformance suite requires: tools, resources and prompts by its names, and the protocol's
whole feature set. A block has no images, sampling or prompts, so stand-ins provide them, behind our own application."""

import base64
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
import mcp_types as t
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ToolsListChanged,
)

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
SOUND = base64.b64encode(
    b"RIFF$\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0@\x1f\0\0@\x1f\0\0\1\0\x08\0data\0\0\0\0"
).decode()

Result = t.CallToolResult | t.InputRequiredResult
Answer = Callable[[Any, t.CallToolRequestParams], Awaitable[Result]]

IMAGE = t.ImageContent(type="image", data=PIXEL, mime_type="image/png")
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def said(*content: Any, error: bool = False) -> t.CallToolResult:
    blocks = [t.TextContent(type="text", text=one) if isinstance(one, str) else one for one in content]
    return t.CallToolResult(content=blocks, is_error=error)


def embedded(uri: str, text: str, kind: str = "text/plain") -> t.EmbeddedResource:
    held = t.TextResourceContents(uri=uri, mime_type=kind, text=text)
    return t.EmbeddedResource(type="resource", resource=held)


def form(question: str, schema: Mapping[str, Any]) -> t.ElicitRequest:
    return t.ElicitRequest(params=t.ElicitRequestFormParams(message=question, requested_schema=dict(schema)))


def sample(question: str, most: int = 100) -> t.CreateMessageRequest:
    message = t.SamplingMessage(role="user", content=t.TextContent(type="text", text=question))
    return t.CreateMessageRequest(params=t.CreateMessageRequestParams(messages=[message], max_tokens=most))


def wants(state: str | None = None, **requests: Any) -> t.InputRequiredResult:
    return t.InputRequiredResult(input_requests=requests, request_state=state)


def given(params: Any, name: str) -> Mapping[str, Any] | None:
    """Return the client's answer to one of our questions; None without a valid answer."""
    found = (params.input_responses or {}).get(name)
    return found.model_dump(by_alias=True) if found is not None else None


def content_of(params: Any, name: str, key: str) -> Any:
    answer = given(params, name)
    return ((answer or {}).get("content") or {}).get(key)


# Tools that answer at once ----------------------------------------------------------------------------------------


async def simple_text(context: Any, params: Any) -> Result:
    return said("This is a simple text response for testing.")


async def image(context: Any, params: Any) -> Result:
    return said(IMAGE)


async def audio(context: Any, params: Any) -> Result:
    return said(t.AudioContent(type="audio", data=SOUND, mime_type="audio/wav"))


async def resource(context: Any, params: Any) -> Result:
    return said(embedded("test://embedded-resource", "This is an embedded resource content."))


async def mixed(context: Any, params: Any) -> Result:
    text = json.dumps({"test": "data", "value": 123})
    held = embedded("test://mixed-content-resource", text, "application/json")
    return said("Multiple content types test:", IMAGE, held)


async def failing(context: Any, params: Any) -> Result:
    return said("This tool intentionally returns an error for testing", error=True)


async def progressing(context: Any, params: Any) -> Result:
    for step in (0, 50, 100):
        await context.session.report_progress(step, 100)
        await anyio.sleep(0.05)
    return said("progress was told")


async def logging(context: Any, params: Any) -> Result:
    for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await context.session.send_log_message("info", line, related_request_id=context.request_id)
        await anyio.sleep(0.05)
    return said("logged")


# Tools that ask the client, as before 2026 ------------------------------------------------------------------------


async def sampling(context: Any, params: Any) -> Result:
    request = sample(params.arguments["prompt"]).params
    answer = await context.session.create_message(
        messages=request.messages, max_tokens=100, related_request_id=context.request_id
    )
    return said(f"LLM response: {answer.content.text}")


async def asked(context: Any, question: str, schema: Mapping[str, Any]) -> str:
    answer = await context.session.elicit_form(question, dict(schema), related_request_id=context.request_id)
    return f"action={answer.action}, content={json.dumps(answer.content)}"


async def elicitation(context: Any, params: Any) -> Result:
    parts = {name: {"type": "string", "description": name} for name in ("username", "email")}
    schema = {"type": "object", "properties": parts, "required": [*parts]}
    return said(f"User response: {await asked(context, params.arguments['message'], schema)}")


async def elicitation_defaults(context: Any, params: Any) -> Result:
    parts = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    return said(
        f"Elicitation completed: {await asked(context, '?', {'type': 'object', 'properties': parts})}"
    )


async def elicitation_enums(context: Any, params: Any) -> Result:
    options = ["option1", "option2", "option3"]
    titled = [{"const": f"value{n}", "title": f"Option {n}"} for n in (1, 2, 3)]
    names = {"enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]}
    parts = {
        "untitledSingle": {"type": "string", "enum": options},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {"type": "string", **names},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    }
    return said(
        f"Elicitation completed: {await asked(context, '?', {'type': 'object', 'properties': parts})}"
    )


# Tools that need an answer first, since 2026 ----------------------------------------------------------------------


async def needs_name(context: Any, params: Any) -> Result:
    name = content_of(params, "user_name", "name")
    return said(f"Hello, {name}!") if name else wants(user_name=form("What is your name?", NAME))


async def needs_sampling(context: Any, params: Any) -> Result:
    answer = given(params, "capital_question")
    if answer is None:
        return wants(capital_question=sample("What is the capital of France?"))
    return said(json.dumps(answer["content"]))


async def needs_roots(context: Any, params: Any) -> Result:
    answer = given(params, "client_roots")
    return said(str(answer["roots"])) if answer else wants(client_roots=t.ListRootsRequest())


async def needs_state(context: Any, params: Any) -> Result:
    if params.request_state == "confirming" and given(params, "confirm"):
        return said("state-ok")
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    return wants("confirming", confirm=form("Please confirm", schema))


async def needs_many(context: Any, params: Any) -> Result:
    wanted = ("user_name", "greeting", "client_roots")
    if params.request_state == "many" and all(given(params, name) for name in wanted):
        return said(f"{content_of(params, 'user_name', 'name')}: all three came")
    return wants(
        "many",
        user_name=form("What is your name?", NAME),
        greeting=sample("Generate a greeting", 50),
        client_roots=t.ListRootsRequest(),
    )


async def needs_rounds(context: Any, params: Any) -> Result:
    if params.request_state is not None and params.request_state.startswith("colour of "):
        name = params.request_state.removeprefix("colour of ")
        return said(f"{name} likes {content_of(params, 'step2', 'color')}")
    name = content_of(params, "step1", "name")
    if params.request_state == "name" and name:
        colour = {"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]}
        return wants(f"colour of {name}", step2=form("Step 2: What is your favorite color?", colour))
    return wants("name", step1=form("Step 1: What is your name?", NAME))


async def needs_what_is_there(context: Any, params: Any) -> Result:
    declared = context.session.client_capabilities
    requests: dict[str, Any] = {}
    if declared is not None and declared.sampling is not None:
        requests["greeting"] = sample("Generate a greeting", 50)
    if declared is not None and declared.elicitation is not None:
        requests["user_name"] = form("What is your name?", NAME)
    return wants(**requests) if requests else said("nothing can be asked")


async def needs_capability(context: Any, params: Any) -> Result:
    declared = context.session.client_capabilities
    if declared is None or declared.sampling is None:
        data = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(t.MISSING_REQUIRED_CLIENT_CAPABILITY, "Sampling is needed.", data)
    return said("it is there")


class Fixture:
    """The server. Its lists change when the suite calls the tools for that."""

    def __init__(self) -> None:
        self._changes = InMemorySubscriptionBus()
        self._tools: dict[str, tuple[Answer, dict[str, Any]]] = {
            **{f"test_{name}": (answer, {}) for name, answer in SIMPLE.items()},
            "test_sampling": (sampling, {"prompt": {"type": "string"}}),
            "test_elicitation": (elicitation, {"message": {"type": "string"}}),
            "test_trigger_tool_change": (self._change_tools, {}),
            "test_trigger_prompt_change": (self._change_prompts, {}),
        }

    def server(self) -> Server[Any]:
        server: Server[Any] = Server(
            "fixture",
            version="1",
            on_list_tools=self._list_tools,
            on_call_tool=self._call,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read,
            on_subscribe_resource=self._subscribed,
            on_unsubscribe_resource=self._subscribed,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._prompt,
            on_completion=self._complete,
            on_set_logging_level=self._subscribed,
            on_subscriptions_listen=ListenHandler(self._changes),
        )
        server.middleware.append(
            RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience="fixture")
        )
        return server

    async def _list_tools(self, context: Any, params: Any) -> t.ListToolsResult:
        def schema(parts: Mapping[str, Any]) -> dict[str, Any]:
            return {"type": "object", "properties": dict(parts), "required": [*parts]}

        return t.ListToolsResult(
            tools=[
                t.Tool(name=name, description=f"For the suite: {name}.", input_schema=schema(parts))
                for name, (_, parts) in self._tools.items()
            ]
        )

    async def _call(self, context: Any, params: t.CallToolRequestParams) -> Result:
        if params.name not in self._tools:
            raise MCPError(t.INVALID_PARAMS, f"There is no tool {params.name!r}.")
        return await self._tools[params.name][0](context, params)

    async def _change_tools(self, context: Any, params: Any) -> Result:
        await self._changes.publish(ToolsListChanged())
        return said("changed")

    async def _change_prompts(self, context: Any, params: Any) -> Result:
        await self._changes.publish(PromptsListChanged())
        return said("changed")

    async def _list_resources(self, context: Any, params: Any) -> t.ListResourcesResult:
        kinds = {"test://static-text": "text/plain", "test://static-binary": "image/png"}
        return t.ListResourcesResult(
            resources=[
                t.Resource(uri=uri, name=uri[7:], description=f"A {kind}.", mime_type=kind)
                for uri, kind in kinds.items()
            ]
        )

    async def _list_templates(self, context: Any, params: Any) -> t.ListResourceTemplatesResult:
        template = t.ResourceTemplate(uri_template="test://template/{id}/data", name="template")
        return t.ListResourceTemplatesResult(resource_templates=[template])

    async def _read(self, context: Any, params: Any) -> t.ReadResourceResult:
        uri = str(params.uri)
        if uri == "test://static-binary":
            held = t.BlobResourceContents(uri=uri, mime_type="image/png", blob=PIXEL)
            return t.ReadResourceResult(contents=[held])
        if uri == "test://static-text":
            text, kind = "This is the content of the static text resource.", "text/plain"
        elif uri.startswith("test://template/"):
            number = uri.split("/")[3]
            kind = "application/json"
            text = json.dumps({"id": number, "templateTest": True, "data": f"Data for ID: {number}"})
        else:
            raise MCPError(t.INVALID_PARAMS, "Resource not found", {"uri": uri})
        return t.ReadResourceResult(contents=[t.TextResourceContents(uri=uri, mime_type=kind, text=text)])

    async def _subscribed(self, context: Any, params: Any) -> t.EmptyResult:
        return t.EmptyResult()

    async def _complete(self, context: Any, params: Any) -> t.CompleteResult:
        return t.CompleteResult(completion=t.Completion(values=["paris", "park"], total=2, has_more=False))

    async def _list_prompts(self, context: Any, params: Any) -> t.ListPromptsResult:
        arguments = {
            "test_prompt_with_arguments": ("arg1", "arg2"),
            "test_prompt_with_embedded_resource": ("resourceUri",),
        }
        names = (
            "test_simple_prompt", *arguments, "test_prompt_with_image", "test_input_required_result_prompt"
        )  # fmt: skip
        return t.ListPromptsResult(
            prompts=[
                t.Prompt(
                    name=name,
                    description=f"For the suite: {name}.",
                    arguments=[t.PromptArgument(name=one, required=True) for one in arguments.get(name, ())],
                )
                for name in names
            ]
        )

    async def _prompt(
        self, context: Any, params: t.GetPromptRequestParams
    ) -> t.GetPromptResult | t.InputRequiredResult:
        of = params.arguments or {}
        match params.name:
            case "test_simple_prompt":
                return prompt("This is a simple prompt for testing.")
            case "test_prompt_with_arguments":
                return prompt(f"Prompt with arguments: arg1='{of['arg1']}', arg2='{of['arg2']}'")
            case "test_prompt_with_embedded_resource":
                held = embedded(of["resourceUri"], "Embedded resource content for testing.")
                return prompt(held, "Please process the embedded resource above.")
            case "test_prompt_with_image":
                return prompt(IMAGE, "Please analyze the image above.")
            case "test_input_required_result_prompt":
                schema = {
                    "type": "object",
                    "properties": {"context": {"type": "string"}},
                    "required": ["context"],
                }
                reported = content_of(params, "user_context", "context")
                request = form("What context should the prompt use?", schema)
                return prompt(f"In the context of {reported}") if reported else wants(user_context=request)
        raise MCPError(t.INVALID_PARAMS, f"There is no prompt {params.name!r}.")


def prompt(*content: Any) -> t.GetPromptResult:
    blocks = [t.TextContent(type="text", text=one) if isinstance(one, str) else one for one in content]
    return t.GetPromptResult(messages=[t.PromptMessage(role="user", content=block) for block in blocks])


SIMPLE: Mapping[str, Answer] = {
    "simple_text": simple_text,
    "image_content": image,
    "audio_content": audio,
    "embedded_resource": resource,
    "multiple_content_types": mixed,
    "error_handling": failing,
    "tool_with_progress": progressing,
    "tool_with_logging": logging,
    "logging_tool": logging,
    "elicitation_sep1034_defaults": elicitation_defaults,
    "elicitation_sep1330_enums": elicitation_enums,
    "missing_capability": needs_capability,
    "streaming_elicitation": needs_name,
    "input_required_result_elicitation": needs_name,
    "input_required_result_sampling": needs_sampling,
    "input_required_result_list_roots": needs_roots,
    "input_required_result_request_state": needs_state,
    "input_required_result_tampered_state": needs_state,
    "input_required_result_multiple_inputs": needs_many,
    "input_required_result_multi_round": needs_rounds,
    "input_required_result_capabilities": needs_what_is_there,
}
