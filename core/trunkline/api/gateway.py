"""The HTTP gateway: authentication, admission, further routes, and the requests that the gateway answers."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunkline.contracts.auth.passkey_verifier import NewPasskey as NewPasskey
    from trunkline.contracts.auth.passkey_verifier import PasskeyCeremony as PasskeyCeremony
    from trunkline.contracts.auth.passkey_verifier import PasskeyVerifier as PasskeyVerifier
    from trunkline.contracts.auth.scopes import TokenScope as TokenScope
    from trunkline.contracts.blocks.messages import BlockStatus as BlockStatus
    from trunkline.contracts.conversations.messages import ConversationSummary as ConversationSummary
    from trunkline.contracts.conversations.messages import ListConversations as ListConversations
    from trunkline.contracts.gateway.access import AdmissionRule as AdmissionRule
    from trunkline.contracts.gateway.access import Authenticator as Authenticator
    from trunkline.contracts.gateway.access import HttpRoute as HttpRoute
    from trunkline.contracts.gateway.access import Identity as Identity
    from trunkline.contracts.gateway.access import StaticSite as StaticSite
    from trunkline.contracts.gateway.client import GatewayClient as GatewayClient
    from trunkline.contracts.gateway.locale import Locale as Locale
    from trunkline.contracts.gateway.messages import ConversationView as ConversationView
    from trunkline.contracts.gateway.messages import MessageAccepted as MessageAccepted
    from trunkline.contracts.gateway.messages import SendMessage as SendMessage
    from trunkline.contracts.gateway.messages import TurnView as TurnView
    from trunkline.contracts.gateway.subjects import LOAD_MESSAGES as LOAD_MESSAGES
    from trunkline.contracts.push.push_sender import PushNotice as PushNotice
    from trunkline.contracts.push.push_sender import PushOutcome as PushOutcome
    from trunkline.contracts.push.push_sender import PushSender as PushSender
    from trunkline.contracts.push.push_sender import PushTarget as PushTarget
    from trunkline.runtime.http.block_guard import BlockGuard as BlockGuard
    from trunkline.runtime.http.block_guard import open_block_guard as open_block_guard
else:
    from trunkline._util.lazy_names import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
