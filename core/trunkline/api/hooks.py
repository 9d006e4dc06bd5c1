"""Types in the signatures of hooks: the settings of the core and the kinds of workers."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunkline.config.settings import ChannelsSettings as ChannelsSettings
    from trunkline.config.settings import GatewaySettings as GatewaySettings
    from trunkline.config.settings import MemorySettings as MemorySettings
    from trunkline.config.settings import MonitorSettings as MonitorSettings
    from trunkline.config.settings import RuntimeSettings as RuntimeSettings
    from trunkline.config.settings import ToolsSettings as ToolsSettings
    from trunkline.contracts.workers.messages import WorkerKind as WorkerKind
else:
    from trunkline._util.lazy_names import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
