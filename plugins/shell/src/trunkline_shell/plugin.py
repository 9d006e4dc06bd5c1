"""The plugin: declares its section, its tools, its notices and its command, and nothing else."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import trunkline
from trunkline.api.hooks import ChannelsSettings, MemorySettings, WorkerKind
from trunkline_shell.settings import ShellSettings

if TYPE_CHECKING:
    import click

    from trunkline.api.channel import SentenceCatalogue


@trunkline.hookimpl
def trunkline_config() -> Iterable[trunkline.ConfigSection]:
    return [trunkline.ConfigSection("plugins", "shell", ShellSettings)]


@trunkline.hookimpl
def trunkline_tools(settings: trunkline.PluginSettings) -> Iterable[trunkline.Tool]:
    """The tools that run programs."""
    from trunkline_shell.background_tools import background_tools
    from trunkline_shell.command_tool import command_tool
    from trunkline_shell.developer_tools import developer_tools

    chosen = settings.section(ShellSettings)
    return [command_tool(chosen), *developer_tools(chosen), *background_tools(settings.home, chosen)]


@trunkline.hookimpl
def trunkline_lifespan(
    worker: WorkerKind, settings: trunkline.PluginSettings
) -> Iterable[trunkline.Lifespan]:
    """The notices of background tasks that have ended, in every tools worker."""
    if worker != "tools":
        return []
    from trunkline.api.text import Redactor
    from trunkline_shell.program_notices import ProgramNotices
    from trunkline_shell.tasks import TaskStore

    store = TaskStore(settings.home, settings.section(ShellSettings))
    secrets = Redactor(settings.section(MemorySettings).redact)
    return [ProgramNotices(store, settings.section(ChannelsSettings).telling, secrets)]


@trunkline.hookimpl
def trunkline_sentences() -> "Iterable[SentenceCatalogue]":
    """The sentences of the notices."""
    from trunkline_shell.sentences import CATALOGUES

    return CATALOGUES


@trunkline.hookimpl
def trunkline_commands(settings: trunkline.PluginSettings) -> "Iterable[click.Command]":
    """``trunkline tasks``."""
    from trunkline_shell.tasks import TaskStore
    from trunkline_shell.tasks_command import tasks_command

    return [tasks_command(TaskStore(settings.home, settings.section(ShellSettings)))]
