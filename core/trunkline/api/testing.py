"""Contract suites that the tests of a plugin inherit, and the platform on which they run."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunkline.testing.adapter_suite import PROGRAMS as PROGRAMS
    from trunkline.testing.adapter_suite import SENTENCE as SENTENCE
    from trunkline.testing.adapter_suite import AdapterSuite as AdapterSuite
    from trunkline.testing.adapter_suite import ScriptedProviderSuite as ScriptedProviderSuite
    from trunkline.testing.adapter_suite import Situation as Situation
    from trunkline.testing.adapter_suite import SituationName as SituationName
    from trunkline.testing.channel_installation import ChannelInstallation as ChannelInstallation
    from trunkline.testing.channel_installation import ChatService as ChatService
    from trunkline.testing.channel_installation import KillResult as KillResult
    from trunkline.testing.channel_installation import channel_installation as channel_installation
    from trunkline.testing.channel_runner import running_channel as running_channel
    from trunkline.testing.channel_suite import ChannelSuite as ChannelSuite
    from trunkline.testing.channel_suite import ChannelUser as ChannelUser
    from trunkline.testing.channel_suite import wait_until as wait_until
    from trunkline.testing.contexts import tool_context as tool_context
    from trunkline.testing.platform import Platform as Platform
    from trunkline.testing.platform import platform as platform
    from trunkline.testing.post_suite import PostSuite as PostSuite
    from trunkline.testing.post_suite import PostWitness as PostWitness
    from trunkline.testing.sandbox_suite import SandboxSuite as SandboxSuite
    from trunkline.testing.scripted_abilities import ScriptedAbilities as ScriptedAbilities
    from trunkline.testing.scripted_completer import ScriptedCompleter as ScriptedCompleter
    from trunkline.testing.scripted_fault import ScriptedFault as ScriptedFault
    from trunkline.testing.scripted_fault import ScriptedFaults as ScriptedFaults
    from trunkline.testing.scripted_fault import scripted_address as scripted_address
    from trunkline.testing.scripted_gateway import ScriptedGateway as ScriptedGateway
    from trunkline.testing.scripted_outgoing_files import ScriptedOutgoingFiles as ScriptedOutgoingFiles
    from trunkline.testing.scripted_records import ScriptedRecords as ScriptedRecords
    from trunkline.testing.store_suite import StoreSuite as StoreSuite
    from trunkline.testing.tool_suite import ToolSuite as ToolSuite
else:
    from trunkline._util.lazy_names import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
