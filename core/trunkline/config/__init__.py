"""The settings: ``trunkline.toml``, environment and flags, merged into typed sections. The origin of each value is
kept.
"""

from trunkline.config.config import Config, SettingRow
from trunkline.config.loader import HOME_VARIABLE, load_config, resolve_home
from trunkline.config.origins import ValueOrigin
from trunkline.config.problems import ConfigProblem, InvalidConfig
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
    "ConfigProblem",
    "GatewaySettings",
    "InvalidConfig",
    "MemorySettings",
    "MonitorSettings",
    "PluginsSettings",
    "RuntimeSettings",
    "Secret",
    "SettingRow",
    "Settings",
    "TelemetrySettings",
    "ToolsSettings",
    "ValueOrigin",
    "load_config",
    "resolve_home",
]
