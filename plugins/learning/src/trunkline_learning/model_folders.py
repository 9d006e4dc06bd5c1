"""Under which name a model's own memory lies."""

import re

DEFAULT = "default"
OTHER_WEIGHT = 0.8
"""Weight of strategies learned with another model, relative to those of the answering model."""


def model_folder(model: str) -> str:
    """The model's name as a folder's: ``/``, ``:`` and spaces become ``_``, dots stay, nothing becomes ``default``."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", model.strip())
    return plain.lstrip(".")[:100] or DEFAULT


def model_weight(theirs: str, model: str) -> float:
    """Return the weight of lessons from folder ``theirs`` for a turn that ``model`` answers. An empty ``model`` means
    that it is not known."""
    return 1.0 if not model or theirs == model_folder(model) else OTHER_WEIGHT
