"""The monitors' endpoints: a model call outside a turn, and the model that answers in a block."""

from trunkline.contracts.gateway.answerer import Answerer, GetAnswerer
from trunkline.contracts.models.circuits import CIRCUIT_BUCKET as CIRCUIT_BUCKET
from trunkline.contracts.models.messages import Complete, Completion
from trunkline_bus import Endpoint, Subject

COMPLETE = Endpoint(
    "model.complete", Subject("trunkline.cmd.model.complete"), Complete, Completion, streaming=True,
    doc="One answer of a model, without tools. If the caller cancels the request, the call to the provider ends.",
)  # fmt: skip
ANSWERER = Endpoint(
    "model.answerer", Subject("trunkline.cmd.model.answerer"), GetAnswerer, Answerer, root=False,
    doc="The model that answers in a block.",
)  # fmt: skip
