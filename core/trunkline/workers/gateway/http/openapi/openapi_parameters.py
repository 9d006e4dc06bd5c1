"""The parameters of the HTTP operations in queries and headers, as the OpenAPI document has them, and the names in
paths. Bodies are structs."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, get_args

from trunkline.contracts.audit.messages import AuditDecision, AuditEvent
from trunkline.contracts.blocks.paths import BLOCK_NAME
from trunkline.contracts.costs.report_messages import Grouping
from trunkline.contracts.memory.search import PassageKind
from trunkline.contracts.tools.messages import Effect

TEXT: Mapping[str, Any] = {"type": "string"}
BOOLEAN: Mapping[str, Any] = {"type": "boolean"}
TIME: Mapping[str, Any] = {
    "type": "string",
    "anyOf": [
        {"format": "date-time"},
        {"format": "date"},
        {"maxLength": 0},
    ],  # an empty field of a form is no limit
}
BLOCK: Mapping[str, Any] = {"type": "string", "pattern": f"^{BLOCK_NAME}$"}
BLOCK_FILTER: Mapping[str, Any] = {"type": "string", "pattern": f"^({BLOCK_NAME})?$"}
SOME_TEXT: Mapping[str, Any] = {"type": "string", "minLength": 1}
KEY: Mapping[str, Any] = {"type": "string", "minLength": 1, "maxLength": 200}
LARGEST = 999_999_999


class Parameter(NamedTuple):
    """A parameter of an operation. It can be left out, unless it is required."""

    place: Literal["query", "header"]
    name: str
    meaning: str
    schema: Mapping[str, Any] = TEXT
    required: bool = False


def _one_of(*values: str) -> Mapping[str, Any]:
    return {"type": "string", "enum": list(values)}


def _choice(words: object) -> Mapping[str, Any]:
    """Return the words of a Literal; an empty field of a form is no limit."""
    return _one_of("", *get_args(words))


def _integer(least: int, most: int = LARGEST) -> Mapping[str, Any]:
    return {"type": "integer", "minimum": least, "maximum": most}


def _page(most: int) -> tuple[Parameter, ...]:
    return (
        Parameter("query", "limit", "the largest number of objects of the page", _integer(1, most)),
        Parameter("query", "order", "`asc` for the oldest first; `desc` by default", _one_of("asc", "desc")),
        Parameter("query", "after", "the id of the last object of the page before"),
    )


def _repeatable(result: str) -> Parameter:
    return Parameter("header", "Idempotency-Key", f"makes a repeat the same {result}", KEY)


PATH = Parameter("query", "path", "the path, relative to the memory root", SOME_TEXT, required=True)
VERSION = Parameter("query", "version", "the version; the present text by default")

PARAMETERS: Mapping[tuple[str, str], tuple[Parameter, ...]] = {
    ("get", "/conversations"): (
        Parameter("query", "limit", "1 to 100, 20 by default", _integer(1, 100)),
        Parameter("query", "offset", "0 by default", _integer(0)),
        Parameter("query", "search", "words of the title or the text"),
        Parameter("query", "from", "the earliest time of the last message, ISO 8601", TIME),
        Parameter("query", "to", "the latest time of the last message, ISO 8601", TIME),
        Parameter("query", "block", "only conversations of this block"),
        Parameter(
            "query",
            "include",
            "`one-shot` also lists conversations that an OpenAI client began and did not continue",
            _one_of("one-shot"),
        ),
        Parameter(
            "query", "pinned", "`true` lists the pinned ones, `false` the others; all by default", BOOLEAN
        ),
        Parameter(
            "query",
            "archived",
            "`exclude` by default, and `include` with a search; `only` lists the archived ones",
            _one_of("exclude", "include", "only"),
        ),
    ),
    ("get", "/api/conversations/{id}/export"): (
        Parameter("query", "format", "`markdown` by default", _one_of("markdown", "json")),
    ),
    ("get", "/api/conversations/{id}/file"): (PATH,),
    ("get", "/conversations/{id}"): (
        Parameter("query", "include", "`tools` also returns the tools' messages", _one_of("tools")),
    ),
    ("get", "/api/models"): (Parameter("query", "refresh", "`true` asks the vendors again", BOOLEAN),),
    ("get", "/api/turns/{id}/events"): (
        Parameter("query", "from", "the id of the last event that arrived"),
        Parameter("header", "Last-Event-ID", "the same, as browsers send it"),
    ),
    ("post", "/conversations/messages"): (_repeatable("turn"),),
    ("post", "/conversations/{id}/messages"): (
        _repeatable("turn"),
        Parameter("header", "Last-Event-ID", "with a repeat: the id of the last event that arrived"),
    ),
    ("post", "/api/conversations/{id}/compact"): (_repeatable("turn"),),
    ("delete", "/api/conversations/{id}/compact"): (_repeatable("turn"),),
    ("post", "/api/turns/{id}/fork"): (_repeatable("fork"),),
    ("get", "/api/approvals"): (
        Parameter("query", "block", "only those of this block"),
        Parameter("query", "settled", "`true` also lists those decided in the last hour", BOOLEAN),
    ),
    ("get", "/api/blocks"): (Parameter("query", "archived", "`true` also lists the archives", BOOLEAN),),
    ("delete", "/api/blocks/{name}"): (
        Parameter("query", "archived", "`true` deletes the newest archive instead", BOOLEAN),
    ),
    ("get", "/api/memory/files"): (
        Parameter("query", "path", "the folder; all of memory by default"),
        Parameter("query", "recursive", "`true` also lists all folders below", BOOLEAN),
    ),
    ("get", "/api/memory/file"): (PATH, VERSION),
    ("delete", "/api/memory/file"): (
        PATH,
        Parameter("query", "expected", "the hash that the file must still have"),
    ),
    ("get", "/api/memory/history"): (
        Parameter("query", "path", "the file or folder; all of memory by default"),
        Parameter("query", "limit", "1 to 1000, 50 by default", _integer(1, 1_000)),
    ),
    ("get", "/api/memory/diff"): (
        Parameter("query", "path", "the file or folder; all of memory by default"),
        Parameter("query", "old", "the earlier version; by default that before the last change up to `new`"),
        Parameter("query", "new", "the later version; the last commit by default"),
    ),
    ("get", "/api/memory/blame"): (
        PATH,
        VERSION,
        Parameter("query", "first", "the first line, counted from 1", _integer(1)),
        Parameter("query", "last", "the last line; that of the file by default", _integer(1)),
    ),
    ("get", "/api/memory/search"): (
        Parameter("query", "query", "the words, or a question", SOME_TEXT, required=True),
        Parameter("query", "names", "`true` searches the names of files instead of text", BOOLEAN),
        Parameter("query", "path", "only files below this folder"),
        Parameter("query", "kind", "only hits of this kind", _choice(PassageKind)),
        Parameter("query", "tag", "only hits with this tag; repeatable"),
        Parameter("query", "speaker", "only messages of this speaker: a name, or user, assistant, tool"),
        Parameter("query", "conversation", "only in this conversation"),
        Parameter("query", "since", "the earliest time, ISO 8601", TIME),
        Parameter("query", "until", "the time before which it was said, ISO 8601", TIME),
        Parameter("query", "limit", "1 to 1000, 10 by default", _integer(1, 1_000)),
    ),
    ("get", "/api/memory/chunks"): (
        Parameter(
            "query", "block", "only chunks that this block's agent would see; all by default", BLOCK_FILTER
        ),
        Parameter("query", "tag", "only chunks with this tag; repeatable"),
        Parameter("query", "type", "only chunks of this type"),
        Parameter("query", "conversation", "only chunks of this conversation"),
        Parameter("query", "after", "only chunks made at or after this time, ISO 8601", TIME),
        Parameter("query", "before", "only chunks made at or before this time, ISO 8601", TIME),
        Parameter("query", "archived", "`true` lists the archived chunks instead", BOOLEAN),
        Parameter("query", "limit", "1 to 1000, 100 by default", _integer(1, 1_000)),
        Parameter("query", "offset", "0 by default", _integer(0)),
    ),
    ("get", "/api/memory/chunks/{id}/links"): (
        Parameter("query", "limit", "1 to 1000, 100 by default", _integer(1, 1_000)),
    ),
    ("post", "/api/memory/import"): (
        Parameter("query", "kind", "the system that the archive is of; recognised from its files by default"),
        Parameter("query", "settings", "`true` also imports policies and the settings of blocks", BOOLEAN),
        Parameter("query", "dry_run", "`true` changes nothing and tells what would change", BOOLEAN),
    ),
    ("get", "/api/costs"): (
        Parameter("query", "by", "what each row is about, `day` by default", _choice(Grouping)),
        Parameter("query", "since", "the earliest time, ISO 8601; 30 days ago by default", TIME),
        Parameter("query", "block", "only requests of this block"),
    ),
    ("get", "/api/tokens"): (Parameter("query", "identity", "only those of this identity"),),
    ("get", "/api/audit"): (
        Parameter("query", "block", "only entries of this block; `all` for those about no block"),
        Parameter("query", "tool", "only entries about this tool"),
        Parameter("query", "effect", "only entries about tools with this effect", _choice(Effect)),
        Parameter("query", "event", "only entries of this kind", _choice(AuditEvent)),
        Parameter("query", "decision", "only entries with this decision", _choice(AuditDecision)),
        Parameter("query", "since", "the earliest time, ISO 8601; a day before `until` by default", TIME),
        Parameter("query", "until", "the time before which entries are listed; now by default", TIME),
        Parameter("query", "limit", "1 to 1000, 100 by default", _integer(1, 1_000)),
        Parameter("query", "offset", "0 by default", _integer(0)),
    ),
    ("post", "/v1/responses"): (_repeatable("response"),),
    ("get", "/v1/responses/{id}"): (
        Parameter(
            "query", "stream", "`true` streams the events of the response, from the first one", BOOLEAN
        ),
        Parameter(
            "query",
            "starting_after",
            "with `stream`: the number of the last event that arrived, for a response in the background",
            _integer(0),
        ),
    ),
    ("get", "/v1/responses/{id}/input_items"): _page(100),
    ("get", "/v1/files"): (*_page(10_000), Parameter("query", "purpose", "only files with this purpose")),
    ("post", "/v1/chat/completions"): (
        Parameter(
            "header",
            "X-Conversation-ID",
            "the conversation to continue; without it the one whose transcript is sent, else a new one",
        ),
    ),
}
"""The parameters of an operation besides its path and body."""


def described_parameters(method: str, path: str) -> list[dict[str, Any]]:
    """Return the parameters of an operation as the document has them, those of the path first."""
    names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    in_path = [
        {"name": name, "in": "path", "required": True, "schema": BLOCK if name == "name" else TEXT}
        for name in names
    ]
    others = [
        {
            "name": one.name,
            "in": one.place,
            "description": one.meaning,
            "schema": one.schema,
            **({"required": True} if one.required else {}),
        }
        for one in PARAMETERS.get((method, path), ())
    ]
    return [*in_path, *others]
