"""Adapters of model vendors, middleware around model requests, and completions for plugins."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunkline.config.settings import ModelsSettings as ModelsSettings
    from trunkline.contracts.conversations.messages import DocumentFile as DocumentFile
    from trunkline.contracts.conversations.messages import ReasoningBlock as ReasoningBlock
    from trunkline.contracts.conversations.messages import Usage as Usage
    from trunkline.contracts.models.abilities import Audio as Audio
    from trunkline.contracts.models.abilities import Embeddings as Embeddings
    from trunkline.contracts.models.abilities import SpeechAudio as SpeechAudio
    from trunkline.contracts.models.abilities import SpeechEvent as SpeechEvent
    from trunkline.contracts.models.abilities import SpeechFinish as SpeechFinish
    from trunkline.contracts.models.abilities import SpeechFormat as SpeechFormat
    from trunkline.contracts.models.abilities import SpeechRequest as SpeechRequest
    from trunkline.contracts.models.abilities import Transcription as Transcription
    from trunkline.contracts.models.abilities import TranscriptionRequest as TranscriptionRequest
    from trunkline.contracts.models.abilities import TranscriptSegment as TranscriptSegment
    from trunkline.contracts.models.abilities_client import BlockAbilities as BlockAbilities
    from trunkline.contracts.models.abilities_client import ModelAbilities as ModelAbilities
    from trunkline.contracts.models.abilities_client import NoAbilities as NoAbilities
    from trunkline.contracts.models.adapter import Ability as Ability
    from trunkline.contracts.models.adapter import AskModel as AskModel
    from trunkline.contracts.models.adapter import Call as Call
    from trunkline.contracts.models.adapter import Finish as Finish
    from trunkline.contracts.models.adapter import ModelAdapter as ModelAdapter
    from trunkline.contracts.models.adapter import ModelEvent as ModelEvent
    from trunkline.contracts.models.adapter import ModelInfo as ModelInfo
    from trunkline.contracts.models.adapter import ModelMiddleware as ModelMiddleware
    from trunkline.contracts.models.adapter import ModelRequest as ModelRequest
    from trunkline.contracts.models.adapter import ModelStatus as ModelStatus
    from trunkline.contracts.models.adapter import Operation as Operation
    from trunkline.contracts.models.adapter import Reasoning as Reasoning
    from trunkline.contracts.models.adapter import ReasoningDone as ReasoningDone
    from trunkline.contracts.models.adapter import Text as Text
    from trunkline.contracts.models.adapter import ToolRan as ToolRan
    from trunkline.contracts.models.circuits import CIRCUIT_BUCKET as CIRCUIT_BUCKET
    from trunkline.contracts.models.circuits import Circuit as Circuit
    from trunkline.contracts.models.client import BlockCompleter as BlockCompleter
    from trunkline.contracts.models.constraints import ResponseFormat as ResponseFormat
    from trunkline.contracts.models.constraints import ToolChoice as ToolChoice
    from trunkline.contracts.models.key_pools import KEY_POOL_BUCKET as KEY_POOL_BUCKET
    from trunkline.contracts.models.key_pools import KeyPool as KeyPool
    from trunkline.contracts.models.key_pools import KeyTicket as KeyTicket
    from trunkline.contracts.models.key_pools import PooledKey as PooledKey
    from trunkline.contracts.models.media_usage import MediaUsage as MediaUsage
    from trunkline.contracts.models.messages import Completion as Completion
    from trunkline.contracts.models.parameters import ModelParameter as ModelParameter
    from trunkline.contracts.models.parameters import validate_parameters as validate_parameters
    from trunkline.contracts.models.price_list import installed_prices as installed_prices
    from trunkline.contracts.models.prices import Price as Price
    from trunkline.contracts.models.prices import PriceTable as PriceTable
    from trunkline.contracts.models.prices import Rate as Rate
    from trunkline.contracts.models.prices import TokenRate as TokenRate
    from trunkline.contracts.models.program import program as program
    from trunkline.contracts.models.redaction_key import REDACTION_BUCKET as REDACTION_BUCKET
    from trunkline.contracts.models.redaction_key import RedactionKey as RedactionKey
    from trunkline.contracts.models.token_estimate import estimate_input_tokens as estimate_input_tokens
    from trunkline.contracts.models.token_estimate import estimate_message_tokens as estimate_message_tokens
    from trunkline.contracts.models.translation import CallIds as CallIds
    from trunkline.contracts.models.translation import is_complete as is_complete
    from trunkline.contracts.models.translation import model_error as model_error
    from trunkline.contracts.models.translation import os_error_text as os_error_text
    from trunkline.contracts.models.translation import overflow_error as overflow_error
    from trunkline.contracts.models.translation import parse_arguments as parse_arguments
    from trunkline.contracts.models.translation import retry_after as retry_after
    from trunkline.contracts.models.translation import with_cure as with_cure
    from trunkline.contracts.plugins.extensions import AdapterSetup as AdapterSetup
    from trunkline.contracts.plugins.extensions import SetupField as SetupField
    from trunkline.contracts.policies.actor_permissions import ActorPermissions as ActorPermissions
    from trunkline.errors import ModelError as ModelError
    from trunkline.errors import ModelFault as ModelFault
else:
    from trunkline._util.lazy_names import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
