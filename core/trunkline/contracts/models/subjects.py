"""The monitors' endpoints: model calls outside a turn, the model that answers in a block, and lists of models."""

from trunkline.contracts.gateway.answerer import Answerer, CheckModel, GetAnswerer
from trunkline.contracts.models.ability_messages import (
    EmbedReply,
    EmbedTexts,
    SpeakReply,
    SpeakText,
    TranscribeAudio,
    TranscribeReply,
)
from trunkline.contracts.models.circuits import CIRCUIT_BUCKET as CIRCUIT_BUCKET
from trunkline.contracts.models.key_pools import KEY_POOL_BUCKET as KEY_POOL_BUCKET
from trunkline.contracts.models.listing import ListModels, ModelListings
from trunkline.contracts.models.messages import Complete, Completion
from trunkline.contracts.models.redaction_key import REDACTION_BUCKET as REDACTION_BUCKET
from trunkline_bus import Endpoint, ObjectStoreSpec, Subject

COMPLETE = Endpoint(
    "model.complete", Subject("trunkline.cmd.model.complete"), Complete, Completion, streaming=True,
    doc="One answer of a model, without tools. If the caller cancels the request, the call to the provider ends.",
)  # fmt: skip
EMBED_TEXTS: Endpoint[EmbedTexts, EmbedReply] = Endpoint(
    "model.embed", Subject("trunkline.cmd.model.embed"), EmbedTexts, EmbedReply, streaming=True,  # type: ignore[arg-type]
    doc="The vectors of texts, in parts, then the model and the cost.",
)  # fmt: skip
TRANSCRIBE_AUDIO: Endpoint[TranscribeAudio, TranscribeReply] = Endpoint(
    "model.transcribe", Subject("trunkline.cmd.model.transcribe"), TranscribeAudio, TranscribeReply, streaming=True,  # type: ignore[arg-type]
    doc="The text of a recording, then the model and the cost.",
)  # fmt: skip
SPEAK_TEXT: Endpoint[SpeakText, SpeakReply] = Endpoint(
    "model.speak", Subject("trunkline.cmd.model.speak"), SpeakText, SpeakReply, streaming=True,  # type: ignore[arg-type]
    doc="The audio of a text, in parts as they arrive, then the model and the cost.",
)  # fmt: skip
ANSWERER = Endpoint(
    "model.answerer", Subject("trunkline.cmd.model.answerer"), GetAnswerer, Answerer, root=False,
    doc="The model that answers in a block.",
)  # fmt: skip
CHECK_MODEL = Endpoint(
    "model.check", Subject("trunkline.cmd.model.check"), CheckModel, Answerer, root=False,
    doc="Whether a model can be had, by the vendor's own list.",
)  # fmt: skip
LIST_MODELS = Endpoint(
    "model.list", Subject("trunkline.cmd.model.list"), ListModels, ModelListings, root=False,
    doc="The models of the configured adapters.",
)  # fmt: skip

ABILITIES = (EMBED_TEXTS, TRANSCRIBE_AUDIO, SPEAK_TEXT)
"""The endpoints for the abilities of models besides answers."""

AUDIO_STORE = ObjectStoreSpec(name="audio", ttl=3_600.0, max_bytes=256 * 1024 * 1024, storage="memory")
"""Recordings to transcribe, in the server's memory: none is written to disk. The monitor deletes each when it has
answered; what a killed monitor leaves expires. A full store refuses recordings.
"""
