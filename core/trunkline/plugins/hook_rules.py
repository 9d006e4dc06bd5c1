"""The validation of hook results: one row for each hook. The checks inspect objects and never call them."""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from trunkline._util.lazy_names import find_public
from trunkline.contracts.auth.passkey_verifier import PasskeyVerifier
from trunkline.contracts.channels.channel import Channel
from trunkline.contracts.documents.reader import Reader
from trunkline.contracts.gateway.access import HttpRoute, StaticSite
from trunkline.contracts.gateway.locale import Locale
from trunkline.contracts.memory.embedder import Embedder
from trunkline.contracts.memory.importer import Importer
from trunkline.contracts.memory.purger import Purger
from trunkline.contracts.memory.search import MemoryHit
from trunkline.contracts.memory.store import ChunkType, LinkType, MemoryStore
from trunkline.contracts.models.adapter import ModelAdapter
from trunkline.contracts.plugins.extensions import ConfigSection, HealthCheck
from trunkline.contracts.push.push_sender import PushSender
from trunkline.contracts.sandbox.sandbox import Sandbox
from trunkline.contracts.sentences.catalogue import SentenceCatalogue
from trunkline.contracts.tools.messages import Effect, ToolSpec
from trunkline.contracts.tools.tool import STAGES, Tool, ToolSource
from trunkline.contracts.turns.compaction import Compactor
from trunkline_bus import Payload

Problem = str | None
"""The problem of an item, as the end of a sentence; None when there is none."""

_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_KEY = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_LANGUAGE = re.compile(
    r"[a-z]{2,3}(-[A-Z][a-z]{3})?(-([A-Z]{2}|[0-9]{3}))?(-([a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*"
)
_TAG = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+\.v\d+")


@dataclass(frozen=True, slots=True)
class HookRule:
    """The rule of a declaring hook. ``noun`` names the items that the hook yields. ``check`` finds the problem of an
    item. ``key`` returns the name that only one item may have. ``ranked`` hooks respect ``tryfirst`` and
    ``trylast``. The others keep load order, so a plugin cannot take over a name by moving itself to the front.
    """

    noun: str
    check: Callable[[Any], Problem]
    key: Callable[[Any], str] | None = None
    ranked: bool = False


def _is_async(item: Any) -> bool:
    return inspect.iscoroutinefunction(item) or inspect.iscoroutinefunction(type(item).__call__)


def _instance(kind: type, more: Callable[[Any], Problem] = lambda item: None) -> Callable[[Any], Problem]:
    def check(item: object) -> Problem:
        if isinstance(item, type) and issubclass(item, kind):
            return f"is a class; yield an instance: {item.__name__}()"
        if not isinstance(item, kind):
            return f"is not a {find_public(kind.__name__)}.{kind.__name__}"
        return more(item)

    return check


def _async_callable(*attributes: str) -> Callable[[Any], Problem]:
    """Return a check for objects with ``async def __call__`` and these attributes, each a text that is not empty."""

    def check(item: object) -> Problem:
        if isinstance(item, type):
            return f"is a class; yield an instance: {item.__name__}()"
        if not callable(item):
            return "cannot be called"
        if not _is_async(item):
            return "must be `async def __call__`"
        return next((f"has no {name}" for name in attributes if not _text(item, name)), None)

    return check


def _text(item: object, name: str) -> str:
    value = getattr(item, name, None)
    return value if isinstance(value, str) else ""


def _tool(item: Tool) -> Problem:
    spec = getattr(item, "spec", None)
    if not isinstance(spec, ToolSpec):
        return "has no spec of the type trunkline.api.tool.ToolSpec"
    if not _TOOL_NAME.fullmatch(spec.name):
        return "has a name with other characters than letters, digits, _ and -, or more than 64"
    if spec.effect not in get_args(Effect):
        return f"has the effect {spec.effect!r}; there are read, write, send and exec"
    if not isinstance(spec.parameters, dict) or spec.parameters.get("type") != "object":
        return 'has parameters that are not a JSON schema of {"type": "object"}'
    if not spec.timeout > 0:
        return "has a timeout that is not above 0"
    return None if _is_async(item) else "must be `async def __call__`"


def _tool_source(item: ToolSource) -> Problem:
    return _named(item) if inspect.iscoroutinefunction(item.run) else "must have `async def run`"


def _model(item: ModelAdapter) -> Problem:
    if not _KEY.fullmatch(_text(item, "name")):
        return "has no name of lower-case letters, digits, _ and -"
    return "has a `stream` that yields nothing" if inspect.iscoroutinefunction(item.stream) else None


def _compactor(item: Compactor) -> Problem:
    return None if inspect.iscoroutinefunction(item.compact) else "must have `async def compact`"


def _named(item: object) -> Problem:
    return (
        None if _KEY.fullmatch(_text(item, "name")) else "has no name of lower-case letters, digits, _ and -"
    )


def _reader(item: Reader) -> Problem:
    suffixes = getattr(item, "suffixes", ())
    if not isinstance(suffixes, tuple) or not suffixes:
        return 'has no suffixes; give a tuple like (".pdf",)'
    if not all(isinstance(one, str) and one.startswith(".") and one == one.lower() for one in suffixes):
        return "has a suffix that is not lower-case or does not begin with a dot"
    if inspect.iscoroutinefunction(item.read):
        return "must have a synchronous `read`: it runs in a process of its own"
    return _named(item)


def _embedder(item: Embedder) -> Problem:
    if not _text(item, "model"):
        return "has no model; a change of it is what makes all vectors anew"
    return _named(item) if inspect.iscoroutinefunction(item.embed) else "must have `async def embed`"


def _type_name(item: object) -> Problem:
    known = re.fullmatch(r"[a-z][a-z0-9_]{0,63}", _text(item, "name"))
    return None if known else "has no name of lower-case letters, digits and _"


def _tool_middleware(item: Any) -> Problem:
    complaint = _async_callable()(item)
    if complaint is None and getattr(item, "stage", None) not in STAGES:
        return f"has no stage; it is one of {', '.join(STAGES)}"
    return complaint


def _model_middleware(item: Any) -> Problem:
    if not callable(item) or isinstance(item, type):
        return "must be an object that can be called, not a class"
    return "must yield events: `async def` with `yield`" if _is_async(item) else None


def _memory_rule(item: Any) -> Problem:
    if not callable(item) or isinstance(item, type):
        return "must be an object that can be called, not a class"
    return "must be synchronous: it is called within the commit" if _is_async(item) else None


def _lifespan(item: Any) -> Problem:
    if not callable(item):
        return "cannot be called"
    if _is_async(item) or inspect.isasyncgenfunction(item):
        return "must be an @asynccontextmanager"
    if not _takes_arguments(item, 1):
        return "must take one argument, a trunkline.LifespanContext with worker, bus and memory(block)"
    return None


def _takes_arguments(item: Any, count: int) -> bool:
    """Report whether a call with ``count`` positional arguments is possible; True when the signature cannot be read."""
    try:
        signature = inspect.signature(item)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True


def _route(item: HttpRoute) -> Problem:
    if not item.path.startswith("/") or ".." in item.path:
        return f"has the path {item.path!r}; it must begin with / and have no .."
    if item.by_block and (item.public or "{block}" not in item.path):
        return (
            f"has the path {item.path!r}; a route by block needs a credential and has {{block}} in its path"
        )
    return None if item.methods else "has no methods"


def _site(item: StaticSite) -> Problem:
    return None if item.folder.is_absolute() else f"has the folder {str(item.folder)!r}; it must be absolute"


def _locale(item: Locale) -> Problem:
    if not _LANGUAGE.fullmatch(_text(item, "tag")):
        return f"has the tag {item.tag!r}; write a BCP 47 tag such as fr, pt-BR or zh-Hant"
    if not _text(item, "name"):
        return "has no name"
    return _texts(item.texts)


def _catalogue(item: SentenceCatalogue) -> Problem:
    if not _LANGUAGE.fullmatch(_text(item, "tag")):
        return f"has the tag {item.tag!r}; write a BCP 47 tag such as fr, pt-BR or zh-Hant"
    return _texts(item.texts)


def _texts(texts: object) -> Problem:
    if not isinstance(texts, Mapping) or not all(
        isinstance(one, str) for pair in texts.items() for one in pair
    ):
        return "has texts that are not a mapping of texts to texts"
    return None


def _verifier(item: PasskeyVerifier) -> Problem:
    numbers = getattr(item, "algorithms", ())
    if not isinstance(numbers, tuple) or not numbers or not all(isinstance(one, int) for one in numbers):
        return "has no algorithms; give a tuple of COSE's numbers like (-7, -257)"
    checks = (item.check_registration, item.check_sign_in)
    return "must have synchronous checks" if any(map(inspect.iscoroutinefunction, checks)) else None


def _push_sender(item: PushSender) -> Problem:
    asynchronous = all(map(inspect.iscoroutinefunction, (item.check, item.send)))
    return None if asynchronous else "must have `async def check` and `async def send`"


def _payload(item: Any) -> Problem:
    if not (isinstance(item, type) and issubclass(item, Payload)):
        return "is not a subclass of trunkline.api.bus.Payload"
    return None if _TAG.fullmatch(_tag(item)) else "has no tag like area.name.v1"


def _tag(item: type[Payload]) -> str:
    return str(item.__struct_config__.tag)


def _command(item: Any) -> Problem:
    import click

    return None if isinstance(item, click.Command) and item.name else "is not a click.Command with a name"


def _section(item: ConfigSection) -> Problem:
    return (
        None
        if item.table in ("plugins", "adapters", "channels")
        else f"stands in the unknown table {item.table!r}"
    )


HOOK_RULES: Mapping[str, HookRule] = {
    "trunkline_config": HookRule(
        "ConfigSection", _instance(ConfigSection, _section), lambda item: f"{item.table}.{item.name}"
    ),
    "trunkline_messages": HookRule("Payload type", _payload, _tag),
    "trunkline_lifespan": HookRule("lifespan", _lifespan),
    "trunkline_bus_middleware": HookRule("bus middleware", _async_callable(), ranked=True),
    "trunkline_health_checks": HookRule("HealthCheck", _instance(HealthCheck), lambda item: str(item.id)),
    "trunkline_commands": HookRule("click.Command", _command, lambda item: str(item.name)),
    "trunkline_context_sources": HookRule(
        "context source", _async_callable("name"), lambda item: str(item.name)
    ),
    "trunkline_turn_middleware": HookRule("turn middleware", _async_callable(), ranked=True),
    "trunkline_turn_routers": HookRule(
        "turn router", _async_callable("name"), lambda item: str(item.name), ranked=True
    ),
    "trunkline_models": HookRule(
        "ModelAdapter", _instance(ModelAdapter, _model), lambda item: str(item.name)
    ),
    "trunkline_model_middleware": HookRule("model middleware", _model_middleware, ranked=True),
    "trunkline_compactors": HookRule("Compactor", _instance(Compactor, _compactor)),
    "trunkline_authenticators": HookRule("authenticator", _async_callable("name"), ranked=True),
    "trunkline_admission_rules": HookRule("admission rule", _async_callable("name"), ranked=True),
    "trunkline_http_routes": HookRule("HttpRoute", _instance(HttpRoute, _route)),
    "trunkline_static_sites": HookRule("StaticSite", _instance(StaticSite, _site)),
    "trunkline_locales": HookRule("Locale", _instance(Locale, _locale), lambda item: str(item.tag)),
    "trunkline_passkey_verifiers": HookRule("PasskeyVerifier", _instance(PasskeyVerifier, _verifier)),
    "trunkline_push_senders": HookRule("PushSender", _instance(PushSender, _push_sender)),
    "trunkline_tools": HookRule("Tool", _instance(Tool, _tool), lambda item: str(item.spec.name)),
    "trunkline_tool_sources": HookRule(
        "ToolSource", _instance(ToolSource, _tool_source), lambda item: str(item.name)
    ),
    "trunkline_tool_middleware": HookRule("tool middleware", _tool_middleware, ranked=True),
    "trunkline_sandboxes": HookRule("Sandbox", _instance(Sandbox, _named), lambda item: str(item.name)),
    "trunkline_readers": HookRule("Reader", _instance(Reader, _reader), lambda item: str(item.name)),
    "trunkline_sentences": HookRule("SentenceCatalogue", _instance(SentenceCatalogue, _catalogue)),
    "trunkline_channels": HookRule("Channel", _instance(Channel, _named), lambda item: str(item.name)),
    "trunkline_embedders": HookRule("Embedder", _instance(Embedder, _embedder), lambda item: str(item.name)),
    "trunkline_memory_stores": HookRule("MemoryStore", _instance(MemoryStore)),
    "trunkline_chunk_types": HookRule(
        "ChunkType", _instance(ChunkType, _type_name), lambda item: str(item.name)
    ),
    "trunkline_link_types": HookRule(
        "LinkType", _instance(LinkType, _type_name), lambda item: str(item.name)
    ),
    "trunkline_importers": HookRule("Importer", _instance(Importer, _named), lambda item: str(item.name)),
    "trunkline_purgers": HookRule("Purger", _instance(Purger, _named), lambda item: str(item.name)),
    "trunkline_memory_rules": HookRule("memory rule", _memory_rule, ranked=True),
}
"""The declaring hooks. Guards have no key, so a guard is never dropped because another has its name."""


def answer_problem(hook: str, answer: Any, request: Mapping[str, Any]) -> Problem:
    """Return the problem with the answer of a deciding hook; None when the answer is valid."""
    if hook != "trunkline_rank":
        return None if isinstance(answer, str) else f"answered with {type(answer).__name__}, not with text"
    if not isinstance(answer, list | tuple) or not all(isinstance(hit, MemoryHit) for hit in answer):
        return "did not answer with a list of hits"
    given = list(request["hits"])
    return None if all(hit in given for hit in answer) else "answered with hits that it was not given"
