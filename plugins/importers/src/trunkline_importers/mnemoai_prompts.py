"""mnemoai's ``prompts.yaml``: prompts that the owner may replace here too become files of memory."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from trunkline.api.importer import ImportedFile, ImportGap
from trunkline_importers.conversion import to_text

PROMPTS: Mapping[str, str] = MappingProxyType(
    {
        "SYSTEM_PROMPT": "AGENT.md",
        "ROUTING_PROMPT": "prompts/route.md",
        "ORCHESTRATOR_PROMPT": "prompts/split.md",
        "AGGREGATOR_PROMPT": "prompts/join.md",
    }
)
"""The prompts of mnemoai, and the files of memory that have their meaning here."""


def read_prompts(text: str, path: str) -> Iterator[ImportedFile | ImportGap]:
    """Yield a file for each prompt that has an equivalent, and a gap for every other one."""
    import yaml

    try:
        # BaseLoader makes texts, lists and tables, and no other objects.
        table = yaml.BaseLoader(text).get_single_data()
    except (yaml.YAMLError, RecursionError):
        table = None
    if not isinstance(table, dict):
        yield ImportGap(what=path, why="it is no table in YAML")
        return
    for name, prompt in table.items():
        what = f"{path}: {to_text(name)}"
        target = PROMPTS.get(name) if isinstance(name, str) else None
        if target is None:
            yield ImportGap(
                what=what, why="it was not imported: there is no such prompt that a person may replace"
            )
        elif isinstance(prompt, str) and prompt.strip():
            yield ImportedFile(path=target, data=f"{to_text(prompt).strip()}\n".encode(), source=what)
            yield ImportGap(
                what=what,
                why="it was written for another program",
                hint=f"Read {target}, and remove what is wrong.",
            )
