"""Asks a model that was just configured for a first answer, directly through its adapter and without a platform."""

from dataclasses import dataclass

import anyio

from trunkline.config import Config
from trunkline.contracts.conversations.messages import Message
from trunkline.contracts.models.adapter import Finish, ModelAdapter, ModelRequest, Text
from trunkline.errors import ConfigError, ModelError
from trunkline.plugins import Plugins
from trunkline.runtime.adapter_selection import adapter_model, default_adapter
from trunkline_bus import new_id

QUESTION = "Say hello in one short sentence."
PROBE_TIMEOUT = 60.0
"""Seconds that the first answer may take. A server on this machine may have to load the model first."""


@dataclass(frozen=True, slots=True)
class ModelProbeResult:
    """The answer of a model to a test question, or the reason for its failure. ``adapter`` names the adapter that was
    used, ``tokens`` says what the vendor counted."""

    adapter: str
    text: str = ""
    problem: str = ""
    tokens: str = ""


_FAULTS = {
    "authentication": "it does not accept the key",
    "unavailable": "nothing answers at its address",
    "timeout": "it did not answer in time",
    "refused": "it refused the request; the model's name may be wrong",
    "rate_limited": "it has had too many requests for now",
    "bad_response": "what it answers is not the protocol that was expected",
    "interrupted": "it broke off in the middle of the answer",
}


async def probe_model(config: Config) -> ModelProbeResult:
    """Ask the configured model for one sentence."""
    plugins = Plugins.load(config)
    try:
        name = default_adapter(config, plugins)
    except ConfigError as error:
        return ModelProbeResult("", problem=error.sentence)
    adapter = next((one.item for one in plugins.models() if one.item.name == name), None)
    if adapter is None:
        return ModelProbeResult(name, problem="it lacks its settings")
    try:
        with anyio.fail_after(PROBE_TIMEOUT):
            text, tokens = await _said(adapter)
        problem = "" if text else "it answered without a word"
        return ModelProbeResult(name, text=text, problem=problem, tokens=tokens)
    except TimeoutError:
        return ModelProbeResult(name, problem=f"no answer within {PROBE_TIMEOUT:.0f} s")
    except ModelError as error:
        unset = _unset_key(config, plugins, name) if error.fault == "authentication" else ""
        problem = (
            f"it wants a key, and {unset} is not set" if unset else _FAULTS.get(error.fault, error.fault)
        )
        return ModelProbeResult(name, problem=problem)
    except ConfigError as error:
        return ModelProbeResult(name, problem=error.sentence)
    finally:
        await adapter.aclose()


def _unset_key(config: Config, plugins: Plugins, adapter: str) -> str:
    """Return the usual variable of the adapter's key if no key was sent, because neither the section names a variable
    nor a usual one is set; else ""."""
    sections = (one.item for one in plugins.config_sections() if one.item.table == "adapters")
    setup = next((one.setup for one in sections if one.name == adapter), None)
    named = config.sources.get(("adapters", adapter, "api_key")) is not None
    if setup is None or named or any(config.environ.get(key) for key in setup.keys):
        return ""
    return next(iter(setup.keys), "")


def answering_model(config: Config) -> str:
    """Return who is asked, for the announcement: the adapter with its model and address, as far as they are set."""
    name = default_adapter(config, Plugins.load(config))
    model = adapter_model(config, name)
    address = next(
        (
            row.value
            for row in config.describe()
            if row.key in (f"adapters.{name}.base_url", f"adapters.{name}.url")
        ),
        "None",
    )
    return f"{name}/{model or 'its default model'}" + (f" at {address}" if address != "None" else "")


async def _said(adapter: ModelAdapter) -> tuple[str, str]:
    question = Message(id=new_id("msg"), role="user", content=QUESTION)
    text = tokens = ""
    async for event in adapter.stream(ModelRequest(messages=(question,))):
        if isinstance(event, Text):
            text += event.text
        elif isinstance(event, Finish) and event.usage.input_tokens:
            tokens = f"{event.usage.input_tokens} tokens in / {event.usage.output_tokens} out"
    return text.strip(), tokens
