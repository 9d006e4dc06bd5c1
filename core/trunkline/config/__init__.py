"""Configuration: ``trunkline.toml``, the environment and flags, as typed settings that know where they come from."""

from trunkline.config.config import Config, Row
from trunkline.config.loader import HOME_VARIABLE, find_home, load_config
from trunkline.config.origins import Origin
from trunkline.config.problems import InvalidConfig, Problem
from trunkline.config.secret import Secret
from trunkline.config.settings import (
    BusSection,
    ChannelsSettings,
    GatewaySettings,
    MemorySettings,
    MonitorSettings,
    PluginsSettings,
    RuntimeSettings,
    Settings,
    TelemetrySettings,
    ToolsSettings,
)

__all__ = [
    "HOME_VARIABLE",
    "BusSection",
    "ChannelsSettings",
    "Config",
    "GatewaySettings",
    "InvalidConfig",
    "MemorySettings",
    "MonitorSettings",
    "Origin",
    "PluginsSettings",
    "Problem",
    "Row",
    "RuntimeSettings",
    "Secret",
    "Settings",
    "TelemetrySettings",
    "ToolsSettings",
    "find_home",
    "load_config",
]
