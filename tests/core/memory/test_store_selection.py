"""Which store keeps memory, and who makes the indexes of chunks and documents for it."""

from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from trunkline.config import load_config
from trunkline.config.settings import DEFAULT_STORE
from trunkline.contracts.documents.collections import DocumentCollections
from trunkline.contracts.memory.chunk_index import ChunkIndex, IndexProvider
from trunkline.contracts.memory.store import MemoryStore
from trunkline.errors import ConfigError
from trunkline.plugins import Plugins
from trunkline.plugins.activity_log import activity_log_folder
from trunkline.plugins.quarantine import Quarantine
from trunkline.workers.memory.store_selection import choose_store, index_provider


class Plain(MemoryStore):
    """A store without an index."""


Plain.__abstractmethods__ = frozenset()


class Indexed(Plain, IndexProvider):
    """A store that makes indexes."""

    def chunk_index(self, store: MemoryStore) -> ChunkIndex:
        raise AssertionError("not asked before the store is open")

    def document_collections(self, folder: Path) -> DocumentCollections:
        raise AssertionError("not asked before the store is open")


def plugins(*stores: tuple[str, MemoryStore], **states: str) -> Any:
    """Plugins with stores, and others by their status."""
    found = [
        SimpleNamespace(owner=owner, name=owner, status="loaded", reason="", hint="") for owner, _ in stores
    ]
    found += [
        SimpleNamespace(
            owner=owner.replace("_", "-"), name=owner, status=status, reason="It broke.", hint="Release it."
        )
        for owner, status in states.items()
    ]
    return SimpleNamespace(
        memory_stores=lambda: tuple(SimpleNamespace(owner=owner, item=store) for owner, store in stores),
        report=SimpleNamespace(plugins=found),
    )


def test_the_default_store_is_used_unless_another_is_named() -> None:
    """This holds despite other stores offered by plugins."""
    default, other = Indexed(), Plain()
    there = plugins(("other", other), (DEFAULT_STORE, default))
    assert choose_store(there, None) is default
    assert choose_store(there, "other") is other


@pytest.mark.parametrize("status", ["disabled", "quarantined", "failed", "isolated"])
def test_a_default_store_that_is_not_loaded_is_named_with_its_state(status: str) -> None:
    """The error has the failure, its place, and the fix."""
    with pytest.raises(ConfigError, match=rf"{DEFAULT_STORE} is {status} \(It broke\)") as refused:
        choose_store(plugins(trunkline_git_store=status), None)
    assert refused.value.hint == "Release it."


@pytest.mark.parametrize(("text", "instead"), [
    ("", "name another store in [memory] store"),
    ('[memory]\nstore = "other"\n', "remove or disable it"),
])  # fmt: skip
def test_the_error_for_a_quarantined_store_names_alternatives(
    tmp_path: Path, text: str, instead: str
) -> None:
    """The platform does not start without its store, so removing or disabling it is no way out."""
    (tmp_path / "trunkline.toml").write_text(text)
    config = load_config(tmp_path, environ={})
    activity_log_folder(tmp_path).mkdir(parents=True)
    Quarantine(tmp_path, 2).add(DEFAULT_STORE, version(DEFAULT_STORE), "It crashed.")
    states = Plugins.load(config).report.plugins
    state = next(one for one in states if one.owner == DEFAULT_STORE)
    assert state.status == "quarantined"
    assert state.hint == f'Correct it, then run: "trunkline plugins release {state.name}". Or {instead}.'


def test_a_store_that_is_not_there_is_named() -> None:
    """The named plugin is not installed, or has no store."""
    with pytest.raises(ConfigError, match=f"{DEFAULT_STORE} is not installed") as refused:
        choose_store(plugins(), None)
    assert "[memory] store" in str(refused.value.hint)
    with pytest.raises(ConfigError, match=r"\[memory\] store names .* nobody is not installed"):
        choose_store(plugins(), "nobody")
    with pytest.raises(ConfigError, match="rlm offers no store"):
        choose_store(plugins(rlm="loaded"), "rlm")


def test_a_store_uses_its_own_indexes_or_those_of_a_plugin() -> None:
    """Without any, memory does not start."""
    own, other, plain = Indexed(), Indexed(), Plain()
    there = plugins(("other", other), ("own", own), ("plain", plain))
    assert index_provider(there, own) is own
    assert index_provider(there, plain) is other
    with pytest.raises(ConfigError, match="no index of chunks"):
        index_provider(plugins(("plain", plain)), plain)
