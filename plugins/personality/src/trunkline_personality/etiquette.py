"""The rules by which an agent marks its claims and proposes memories where it may not write them (RLM-F27). Pure."""

from trunkline import BlockConfig
from trunkline_personality.conversation_state import CANDIDATES

CLAIMS = """Where it matters how sure something is, mark the sentence: [Fact] for what a source or a tool says, \
[Speculation] for what you infer, [Opinion] for what you would prefer."""

CAPABILITIES = (
    "When you are asked what you can do, begin with this: memory {memory}; tools as they are listed."
)

PROPOSE = f"""You may not write memory. When something should be kept, end your answer with the line {CANDIDATES} and \
one line for each, beginning with "- ". The owner decides about them."""


def etiquette(block: BlockConfig) -> str:
    """Return the rules for an agent, by its block's permission to write memory."""
    memory = block.memory
    if memory.enabled and memory.write_layers:
        return "\n".join([CLAIMS, CAPABILITIES.format(memory="read and written")])
    able = "read, not written" if memory.enabled else "neither read nor written"
    return "\n".join([CLAIMS, CAPABILITIES.format(memory=able), PROPOSE])
