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

An error that leaves the platform is a code and a fixed sentence, nothing else: no path, no key, no stack trace. The
HTTP header `X-Correlation-ID` leads to the log, which has the details.
"""

FAULTS = {
    "authentication": "the provider refused the key",
    "rate_limited": "the provider wants fewer requests",
    "unavailable": "the provider cannot be reached, or answers with an error of its own",
    "timeout": "the model said nothing for longer than `monitor.model_idle_timeout`",
    "bad_response": "what came is not what the provider's protocol says",
    "interrupted": "the stream ended in its middle",
    "refused": "the provider or a guard refused the request",
}

KIND_NOTE = """
A tool that fails gives its model a text. For programs it also says of which kind the error is: in the result's
`error_kind` in the journal, the effect ledger, the feed and the stored conversation, and as `error.type` of the call's
span. A plugin's tool says it with `raise trunkline.ToolError("There is no such shelf.", kind="not_found")`; without
`kind` it is `failed`. An exception of another type is `internal`. An MCP server's `isError` is `upstream_error`. The
kinds are stable, the texts are not.
"""

EXITS = {
    0: "all is well",
    FAILED: "an error: one sentence on standard error, mostly with a hint",
    USAGE: "the command was called in a wrong way",
    3: "`say` and `chat`: a turn waits for somebody's decision",
    INTERRUPTED: "Ctrl-C",
}


def page() -> str:
    """The whole page."""
    return "\n\n".join([INTRODUCTION.strip(), _codes(), _faults(), _kinds(), _exits(), _trees()])


def _codes() -> str:
    rows = [(code(one.value), str(STATUS[one]), FIXED_SENTENCES[one]) for one in ErrorCode]
    note = (
        "A failure of a turn that has begun comes as an `error` event in the stream, after status 200. "
        "Paths under `/v1/` put code and sentence into OpenAI's error object. A worker may say more than the fixed "
        "sentence to a channel on the bus when it holds nothing secret, such as which block does not exist."
    )
    return f"## Codes\n\n{table(('code', 'HTTP status', 'sentence'), rows)}\n\n{note}"


def _faults() -> str:
    rows = [(code(fault), FAULTS[fault]) for fault in typing.get_args(ModelFault)]
    note = "Behind `provider_error` stands one of these. They are in the log and in traces, and never reach a client."
    return f"## Why a model failed\n\n{note}\n\n{table(('fault', 'means'), rows)}"


def _kinds() -> str:
    rows = [(code(kind), means) for kind, means in TOOL_ERROR_KINDS.items()]
    return f"## Kinds of tool errors\n\n{KIND_NOTE.strip()}\n\n{table(('kind', 'means'), rows)}"


def _exits() -> str:
    rows = [(str(status), means) for status, means in EXITS.items()]
    return "## Exit status of `trunkline`\n\n" + table(("status", "means"), rows)


def _trees() -> str:
    core = dedent(prose(errors).partition("::")[2]).strip()
    bus = prose(bus_errors).partition("\n\n")[2]
    return (
        f"## Exceptions of the core (`trunkline.errors`)\n\n```text\n{core}\n```\n\n"
        f"## Exceptions of the bus (`trunkline_bus`)\n\n```text\n{bus}\n```"
    )
