"""The monitors' one endpoint: a model's answer outside of a turn."""

from trunkline.messages.completion import Complete, Completion
from trunkline_bus import Endpoint, Subject

COMPLETE = Endpoint(
    "model.complete", Subject("trunkline.cmd.model.complete"), Complete, Completion, streaming=True,
    doc="One answer of a model, without tools. Leaving before it came ends the call at the vendor.",
)  # fmt: skip
