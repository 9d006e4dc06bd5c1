"""Names in plugins' sections that refer to models and blocks, of which some may not exist."""

from collections.abc import Collection, Iterator

from trunkline.config import Config, ConfigProblem
from trunkline.config.problems import did_you_mean
from trunkline.contracts.blocks.paths import BLOCKS_FOLDER
from trunkline.contracts.plugins.extensions import ConfigSection
from trunkline.errors import ConfigError

MEMORY = "memory"
"""The folder of memory in the home."""


def named_models(config: Config, declared: ConfigSection) -> Iterator[tuple[str, str]]:
    """Yield each model of a vendor that the section names (``adapter/model``), with its setting. A section that cannot
    be read names none."""
    key = declared.table, declared.name
    try:
        section = config.section(*key, declared.type)
    except ConfigError:
        return
    for setting, model in declared.models(section) if declared.models else ():
        if "/" in model:
            yield ".".join((*key, *setting)), model


def missing_references(
    config: Config, declared: ConfigSection, adapters: Collection[str]
) -> Iterator[ConfigProblem]:
    """Yield a problem for each name in the section that nothing has. A section that cannot be read has none: its own
    problems are told first. The blocks are those in the memory of this home; on a machine without memory no block is
    judged."""
    key = declared.table, declared.name
    try:
        section = config.section(*key, declared.type)
    except ConfigError:
        return
    for setting, model in declared.models(section) if declared.models else ():
        if model.partition("/")[0] not in adapters:
            what = f"names {model!r}, whose adapter is not set up"
            yield _problem(config, (*key, *setting), what, did_you_mean(model.partition("/")[0], adapters))
    blocks = _blocks(config)
    for setting, block in declared.blocks(section) if declared.blocks else ():
        if blocks and block not in blocks:
            what = f"names the block {block!r}, which does not exist"
            yield _problem(config, (*key, *setting), what, did_you_mean(block, blocks))


def _problem(config: Config, key: tuple[str, ...], what: str, hint: str) -> ConfigProblem:
    return ConfigProblem(".".join(key), config.sources.describe_location(key), what, hint)


def _blocks(config: Config) -> set[str]:
    """Return the names of the blocks of this home; empty if it has no memory."""
    memory = config.home / MEMORY
    if not memory.is_dir():
        return set()
    folder = memory / BLOCKS_FOLDER
    found = {one.name for one in folder.iterdir()} if folder.is_dir() else set()
    return {config.settings.gateway.default_block, *found}
