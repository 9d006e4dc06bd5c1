"""Commands of plugins: groups, output, confirmation, local times, and requests to the platform or to memory."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunkline.cli.attached_workers import with_workers as with_workers
    from trunkline.cli.command import Command as Command
    from trunkline.cli.command import Group as Group
    from trunkline.cli.command import LazyGroup as LazyGroup
    from trunkline.cli.confirmation import confirm as confirm
    from trunkline.cli.memory.attached_memory import COMMAND_SECONDS as COMMAND_SECONDS
    from trunkline.cli.memory.attached_memory import with_memory as with_memory
    from trunkline.cli.output import print_done as print_done
    from trunkline.cli.output import print_json as print_json
    from trunkline.cli.output import print_table as print_table
    from trunkline.cli.output import print_text as print_text
    from trunkline.cli.time_type import LocalTime as LocalTime
    from trunkline.home.listeners import Listener as Listener
    from trunkline.home.listeners import registered_listener as registered_listener
else:
    from trunkline._util.lazy_names import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
