"""The page of errors: the fixed codes with sentences and HTTP status, and the exceptions."""

import typing
from textwrap import dedent

from generator.markdown import code, prose, table
from trunkline import errors
from trunkline.cli.errors import FAILED, INTERRUPTED, USAGE
from trunkline.errors import FIXED_SENTENCES, TOOL_ERROR_KINDS, ErrorCode, ModelFault
from trunkline.workers.gateway.http.responses import STATUS
from trunkline_bus import errors as bus_errors

INTRODUCTION = """
# Errors

A client receives an error as a code and a fixed sentence, without paths, keys or stack traces. `metadata` may name the
wrong part of the request, and tells the owner why a model failed or a request conflicts. The details are in the log,
under the value of the HTTP header `X-Correlation-ID`.
"""

FAULTS = {
    "authentication": "the provider refused the key",
    "rate_limited": "the provider limits the rate of requests",
    "unavailable": "the provider cannot be reached, or answers with an error of its own",
    "timeout": "the model sent nothing for longer than `monitor.model_idle_timeout`",
    "bad_response": "the response does not follow the provider's protocol",
    "interrupted": "the stream ended before the response was complete",
    "refused": "the provider or a guard refused the request",
    "wrong_format": "the answer is not in the requested format, also after one repair",
    "over_budget": "a budget of the owner is used up, and no request was sent",
}

KIND_NOTE = """
A tool that fails returns a text for the model, and the kind of the error for programs. The kind is `error_kind` of the
result in the journal, the effect ledger, the feed and the stored conversation, and `error.type` of the call's span. A
plugin's tool sets it with `raise trunkline.ToolError("There is no such shelf.", kind="not_found")`; without
`kind` it is `failed`. An exception of another type is `internal`. An MCP server's `isError` is `upstream_error`. The
kinds are stable, the texts are not.
"""

EXITS = {
    0: "success",
    FAILED: "an error: one sentence on standard error, usually with a hint",
    USAGE: "the command line is wrong",
    3: "`say` and `chat`: a turn waits for a person's decision",
    INTERRUPTED: "Ctrl-C",
}


def page() -> str:
    """The whole page."""
    return "\n\n".join([INTRODUCTION.strip(), _codes(), _faults(), _kinds(), _exits(), _trees()])


def _codes() -> str:
    rows = [(code(one.value), str(STATUS[one]), FIXED_SENTENCES[one]) for one in ErrorCode]
    note = (
        "If a turn fails after it has begun, the stream with status 200 has an `error` event. "
        "Routes under `/v1/` put code and sentence into OpenAI's error object. On the bus a worker may send a channel "
        "a more detailed sentence without secrets, such as which block does not exist."
    )
    return f"## Codes\n\n{table(('code', 'HTTP status', 'sentence'), rows)}\n\n{note}"


def _faults() -> str:
    rows = [(code(fault), FAULTS[fault]) for fault in typing.get_args(ModelFault)]
    note = "A failed call of a model has one of these faults in the log and in traces. They are not sent to clients."
    return f"## Why a model failed\n\n{note}\n\n{table(('fault', 'meaning'), rows)}"


def _kinds() -> str:
    rows = [(code(kind), means) for kind, means in TOOL_ERROR_KINDS.items()]
    return f"## Kinds of tool errors\n\n{KIND_NOTE.strip()}\n\n{table(('kind', 'meaning'), rows)}"


def _exits() -> str:
    rows = [(str(status), means) for status, means in EXITS.items()]
    return "## Exit status of `trunkline`\n\n" + table(("status", "meaning"), rows)


def _trees() -> str:
    core = dedent(prose(errors).partition("::")[2]).strip()
    bus = prose(bus_errors).partition("\n\n")[2]
    return (
        f"## Exceptions of the core (`trunkline.errors`)\n\n```text\n{core}\n```\n\n"
        f"## Exceptions of the bus (`trunkline_bus`)\n\n```text\n{bus}\n```"
    )
