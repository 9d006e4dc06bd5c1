"""Paths and formats of the learned files in memory: JSON that a person can read and git can blame by line. Pure."""

import json
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from trunkline_learning.model_folders import model_folder
from trunkline_learning.turns import FinishedTurn

T = TypeVar("T")

MODELS = "models"
PROFILE = "profile.json"
POSITION = "learning/position.json"


def playbook_folder(folder: str) -> str:
    """The folder of a model's strategies, one file each."""
    return f"{MODELS}/{folder}/playbook"


def strategy_path(folder: str, id: str) -> str:
    """A strategy's file."""
    return f"{playbook_folder(folder)}/{id}.json"


def episodes_folder(folder: str) -> str:
    """The folder of a model's episodes, by day."""
    return f"{MODELS}/{folder}/episodes"


def episode_path(turn: FinishedTurn, id: str) -> str:
    """The file of a turn's episode."""
    return f"{episodes_folder(model_folder(turn.model))}/{turn.at.astimezone(UTC):%Y-%m-%d}/{id}.json"


def metrics_path(folder: str) -> str:
    """A model's numbers."""
    return f"{MODELS}/{folder}/metrics.json"


def is_strategy(path: str) -> bool:
    """Report whether it is the file of a strategy."""
    parts = path.strip("/").split("/")
    return len(parts) == 4 and parts[0] == MODELS and parts[2] == "playbook" and path.endswith(".json")


def is_episode(path: str) -> bool:
    """Report whether it is the file of an episode."""
    parts = path.strip("/").split("/")
    return len(parts) == 5 and parts[0] == MODELS and parts[2] == "episodes" and path.endswith(".json")


def model_folder_in(path: str) -> str:
    """The model's folder that a file lies in."""
    return path.strip("/").split("/")[1]


def day_of(path: str) -> datetime:
    """The day by which an episode is filed; the beginning of time for an invalid folder."""
    try:
        return datetime.strptime(path.strip("/").split("/")[3], "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        return datetime.fromtimestamp(0, UTC)


def encode(value: Any) -> str:
    """The file's text: one key a line, sorted, a newline at the end."""
    return json.dumps(msgspec.to_builtins(value), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def decode(text: str, type: type[T]) -> T | None:
    """Parse a file; None when its content is invalid, after a manual edit or a crash."""
    try:
        return msgspec.json.decode(text, type=type)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None
