"""Asks a model that was just configured for a first answer. The cost ledger records it, and budgets hold for it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio

from trunkline.acl.roles import MONITOR
from trunkline.cli.model_errors import describe_fault
from trunkline.config import Config
from trunkline.errors import ConfigError, ModelError, TrunklineError
from trunkline.plugins import Plugins
from trunkline.runtime.adapter_selection import adapter_model, check_adapters, default_adapter
from trunkline_bus import BusError

if TYPE_CHECKING:
    from trunkline.workers.monitor.probe_worker import ProbeWorker

QUESTION = "Say hello in one short sentence."
PROBE_TIMEOUT = 60.0
"""Seconds that the first answer may take. A server on this machine may have to load the model first."""

MAX_TOKENS = 512
"""Tokens of the answer: a few words, and what a model may reason before them."""


@dataclass(frozen=True, slots=True)
class ModelProbeResult:
    """The answer of a model to a test question, or the reason for its failure and what to do. ``adapter`` names the
    adapter that was used, ``tokens`` says what the vendor counted."""

    adapter: str
    text: str = ""
    problem: str = ""
    tokens: str = ""
    hint: str = ""


ONLY_MONITORS = "only a monitor may ask a model here, because each worker has a NATS user of its own"
ASK_MONITOR = (
    f'Restart the monitor, so that it takes the settings, and let it ask: trunkline say "{QUESTION}"'
)


def not_permitted(config: Config) -> ModelProbeResult | None:
    """Return why this process cannot ask a model, and what to do instead; None if it can. On a server with the accounts
    of ``deploy/`` the cost ledger is written by monitors, and by no operator.
    """
    bus = config.settings.bus
    if bus.url is None or bus.manage_streams or bus.user == MONITOR.name:
        return None
    adapter = config.settings.runtime.provider_adapter
    return ModelProbeResult(adapter, problem=f"it was not asked: {ONLY_MONITORS}", hint=ASK_MONITOR)


async def probe_model(config: Config) -> ModelProbeResult:
    """Ask the configured model for one sentence, with the bus and memory of the running platform, or of one that runs
    only as long as the question.
    """
    plugins = Plugins.load(config)
    try:
        check_adapters(
            config, ()
        )  # a misspelled section, such as that of budgets, must not be without effect
        name = default_adapter(config, plugins)
    except ConfigError as error:
        return ModelProbeResult("", problem=error.sentence)
    if all(one.item.name != name for one in plugins.models()):
        return ModelProbeResult(name, problem="it lacks its settings")
    try:
        async with _probe_worker(config) as worker:
            return await _ask(worker, name, _unset_key(config, plugins, name))
    except TrunklineError as error:
        return ModelProbeResult(name, problem=f"it was not asked: {error.sentence.removesuffix('.')}")
    except BusError as error:
        return ModelProbeResult(name, problem=f"it was not asked, because the bus is not available: {error}")


@asynccontextmanager
async def _probe_worker(config: Config) -> AsyncIterator["ProbeWorker"]:
    from trunkline.cli.log_file import log_to_file
    from trunkline.runtime.platform_connection import connect_to_platform
    from trunkline.runtime.worker_host import WorkerHostSettings, run_worker
    from trunkline.workers import load_worker
    from trunkline.workers.monitor.probe_worker import ProbeWorker
    from trunkline_bus.task_group import background_tasks

    stop = anyio.Event()
    with log_to_file(config, "init"):
        async with connect_to_platform(config, load_worker, name="init", kinds=("memory",)) as bus:
            settings = WorkerHostSettings(config, bus.link.settings, prepare_bus=False)
            async with background_tasks() as tasks:
                yield await tasks.start(run_worker, ProbeWorker, settings, stop)


async def _ask(worker: "ProbeWorker", adapter: str, unset: str) -> ModelProbeResult:
    try:
        with anyio.fail_after(PROBE_TIMEOUT):
            text, finish = await worker.ask(QUESTION, MAX_TOKENS)
    except TimeoutError:
        return ModelProbeResult(adapter, problem=f"no answer within {PROBE_TIMEOUT:.0f} s")
    except ModelError as error:
        return ModelProbeResult(adapter, problem=_problem(error, unset))
    except BusError as error:
        return ModelProbeResult(
            adapter, problem=f"it was not asked, because the bus is not available: {error}"
        )
    if not text and finish.reason == "max_tokens":
        text = f"(It reasoned, and said nothing yet within {MAX_TOKENS} tokens.)"
    usage = finish.usage
    tokens = f"{usage.input_tokens} tokens in / {usage.output_tokens} out" if usage.input_tokens else ""
    return ModelProbeResult(adapter, text, "" if text else "it answered without a word", tokens)


def _problem(error: ModelError, unset: str) -> str:
    """Return why the model did not answer. ``unset`` is the variable of a key that was not sent."""
    if error.fault == "over_budget":
        return f"it was not asked. {error.detail.removesuffix('.')}"
    return describe_fault(error.fault, unset)


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
