"""The monitors' endpoints: a model call outside a turn, the model that answers in a block, and lists of models."""

from trunkline.contracts.gateway.answerer import Answerer, CheckModel, GetAnswerer
from trunkline.contracts.models.circuits import CIRCUIT_BUCKET as CIRCUIT_BUCKET
from trunkline.contracts.models.key_pools import KEY_POOL_BUCKET as KEY_POOL_BUCKET
from trunkline.contracts.models.listing import ListModels, ModelListings
from trunkline.contracts.models.messages import Complete, Completion
from trunkline.contracts.models.redaction_key import REDACTION_BUCKET as REDACTION_BUCKET
from trunkline_bus import Endpoint, Subject

COMPLETE = Endpoint(
    "model.complete", Subject("trunkline.cmd.model.complete"), Complete, Completion, streaming=True,
    doc="One answer of a model, without tools. If the caller cancels the request, the call to the provider ends.",
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
