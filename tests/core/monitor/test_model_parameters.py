"""The validation of a vendor's parameters."""

from typing import Any

import pytest

from trunkline import ConfigError
from trunkline.api.model import ModelParameter, validate_parameters

TABLE = (
    ModelParameter(name="top_k", type="integer", doc="Sample from the k most likely tokens.", minimum=1),
    ModelParameter(name="top_p", type="number", doc="Nucleus sampling.", minimum=0, maximum=1),
    ModelParameter(
        name="reasoning_effort", type="string", doc="How much the model reasons.", choices=("low", "high"),
        models=("deep-*",),
    ),
)  # fmt: skip


@pytest.mark.parametrize(
    ("given", "model"),
    [
        ({}, ""),
        ({"top_k": 4, "top_p": 1}, "shallow"),
        ({"reasoning_effort": "low"}, "deep-2"),
        ({"reasoning_effort": "low"}, ""),
    ],
)
def test_known_parameters_pass(given: dict[str, Any], model: str) -> None:
    """An unnamed model may be any model."""
    validate_parameters(TABLE, given, model=model, place="adapters.x.parameters")


@pytest.mark.parametrize(
    ("given", "model", "said"),
    [
        ({"topk": 4}, "", ("adapters.x.parameters has no parameter 'topk'", "reasoning_effort, top_k, top_p")),
        ({"reasoning_effort": "low"}, "shallow", ("'reasoning_effort'", "The model shallow takes: top_k, top_p")),
        ({"reasoning_effort": "most"}, "deep-1", ("adapters.x.parameters.reasoning_effort is 'most'", "low, high")),
        ({"top_k": 0}, "", ("top_k is 0", "at least 1")),
        ({"top_p": 1.5}, "", ("top_p is 1.5", "at most 1")),
        ({"top_k": True}, "", ("top_k is True", "of type integer")),
        ({"top_k": "4"}, "", ("top_k is '4'", "of type integer")),
    ],
)  # fmt: skip
def test_other_parameters_are_refused_with_the_cure(
    given: dict[str, Any], model: str, said: tuple[str, ...]
) -> None:
    """The error names the setting, and the hint lists what may be set."""
    with pytest.raises(ConfigError) as refused:
        validate_parameters(TABLE, given, model=model, place="adapters.x.parameters")
    text = f"{refused.value} {refused.value.hint}"
    assert all(part in text for part in said), text
