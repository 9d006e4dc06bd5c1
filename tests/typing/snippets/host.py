"""The use of configuration and plugins by a worker, in strict typing."""

from pathlib import Path
from typing import assert_type

from trunkline import Tool
from trunkline.api.gateway import SendMessage
from trunkline.api.model import ModelAdapter
from trunkline.config import Config, Secret, load_config
from trunkline.plugins import OwnedItem, Plugins


def start(home: Path) -> None:
    config = load_config(home, flags={"gateway.port": 0})
    assert_type(config, Config)
    assert_type(config.settings.gateway.port, int)
    assert_type(config.settings.bus.password, Secret | None)
    plugins = Plugins.load(config, worker="tools")
    assert_type(plugins.tools(), tuple[OwnedItem[Tool], ...])
    assert_type([owned.item.name for owned in plugins.models()], list[str])
    assert_type(plugins.route(SendMessage(content="x")), str | None)
    for owned in plugins.models():
        assert_type(owned, OwnedItem[ModelAdapter])
    Plugins.load(config, worker="cook")  # type: ignore[arg-type]
    config.settings.gateway.port = 3  # type: ignore[misc]
