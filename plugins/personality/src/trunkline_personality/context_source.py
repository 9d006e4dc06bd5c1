"""The context source: tells an agent its identity, its owner, and what to remember.

A file that says nothing beyond the text it began with is left out, and so is one that is absent: the turn goes on.
With nothing written and nothing chosen, the model is given the instructions that a memory begins with.
"""

import logging
from collections.abc import Mapping, Sequence

from trunkline import BlockConfig, ContextPart, MemoryFile, ToolError, TurnInfo
from trunkline.api.memory import BLOCK_FILE
from trunkline.api.turn import StatusShown
from trunkline_personality import state
from trunkline_personality.authors import AuthorCache
from trunkline_personality.calibration import calibrate
from trunkline_personality.context_files import (
    CHOICE,
    CONTEXT_FILES,
    DEFAULT_CHOICE,
    MEMORY,
    ContextFile,
)
from trunkline_personality.conversation_state import CANDIDATES
from trunkline_personality.curated_memory import CuratedMemory
from trunkline_personality.onboarding import onboarding_part, resume_part
from trunkline_personality.placeholders import without_placeholders
from trunkline_personality.sliders import SLIDERS
from trunkline_personality.state import PersonalityState
from trunkline_personality.surges import SURGE_VALUE, surged_sliders, with_surges

log = logging.getLogger(__name__)


CLAIMS = """Where it matters how sure something is, mark the sentence: [Fact] for what a source or a tool says, \
[Speculation] for what you infer, [Opinion] for what you would prefer."""

CAPABILITIES = (
    "When you are asked what you can do, begin with this: memory {memory}; tools as they are listed."
)

PROPOSE = f"""You may not write memory. When something should be kept, end your answer with the line {CANDIDATES} and \
one line for each, beginning with "- ". The owner decides about them."""


class PersonalityContext:
    """Tells the files and the choices."""

    name = "guide"
    files = (*(place.path for place in CONTEXT_FILES), DEFAULT_CHOICE, CHOICE, BLOCK_FILE)

    def __init__(self) -> None:
        self._authors = AuthorCache()

    async def __call__(self, turn: TurnInfo) -> Sequence[ContextPart | StatusShown]:
        """The files that say something, the personality and sliders that were chosen, the HUD if it is wished for."""
        chosen = read_choice(turn.files)
        parts: list[ContextPart | StatusShown] = []
        for place in CONTEXT_FILES:
            if (file := turn.files.get(place.path)) and (text := _file_text(place.path, file.content)):
                parts.append(await self._part(turn, place, file, text))
        if (file := turn.files.get(BLOCK_FILE)) and (text := _purpose(turn.block)):
            parts.append(await self._part(turn, ContextFile(BLOCK_FILE, 97, 0.1), file, text))
        loaded = len(parts)
        message = turn.request.message.content
        if chosen.is_customized:
            parts += [
                part for name in _personality_names(chosen) if (part := await self._personality(turn, name))
            ]
            parts += [_sliders(chosen, turn), _etiquette(turn)]
        parts += [part for part in (await onboarding_part(turn), resume_part(turn)) if part]
        if up := surged_sliders(message):
            parts.append(_surge(up))
        if chosen.hud != "off":
            from trunkline_personality import hud_output

            parts += hud_output.hud_parts(with_surges(calibrate(chosen, message), message), turn, loaded)
        return parts

    async def _part(self, turn: TurnInfo, place: ContextFile, file: MemoryFile, text: str) -> ContextPart:
        return ContextPart(
            place.path,
            text,
            by_owner=await self._authors.is_written_by_owner(turn.memory, place.path, file),
            priority=place.priority,
            share=place.share,
            rest=f'memory_read with path "{place.path}" has all of it.',
        )

    async def _personality(self, turn: TurnInfo, name: str) -> ContextPart | None:
        path = f"/personalities/{name}.md"
        try:
            file = await turn.memory.read(path)
        except ToolError as error:
            log.warning("the personality %s is skipped: %s", name, error)
            return None
        text = without_placeholders(file.content)
        return await self._part(turn, ContextFile(path, 85, 0.15), file, text) if text else None


def read_choice(files: Mapping[str, MemoryFile]) -> PersonalityState:
    """Return the block's choice, else the general one. A file that cannot be read counts as absent."""
    for path in (CHOICE, DEFAULT_CHOICE):
        file = files.get(path)
        if file is not None:
            try:
                return state.parse_state(file.content)
            except ValueError as error:
                log.warning("%s is ignored: %s", file.path, error)
    return PersonalityState()


def _file_text(path: str, content: str) -> str:
    return CuratedMemory.parse(content).text if path == MEMORY else without_placeholders(content)


def _purpose(block: BlockConfig) -> str:
    """Return the block's purpose: its description and its goals; "" when it has neither."""
    goals = ["The goals of this block:", *(f"- {goal}" for goal in block.goals)] if block.goals else []
    said = [f"What this block is for: {block.description}"] if block.description else []
    return "\n".join([*said, *goals])


def _personality_names(chosen: PersonalityState) -> tuple[str, ...]:
    """The personalities to tell: always BASE, and over it the chosen one."""
    own = chosen.personality
    return (state.BASE,) if own in ("", state.BASE) else (state.BASE, own)


def _sliders(chosen: PersonalityState, turn: TurnInfo) -> ContextPart:
    """Return the style that the sliders ask for. Where sliders adapt to each message, the style is part of the
    message's context."""
    now = calibrate(chosen, turn.request.message.content)
    lines = [f"- {s.name} {now.value(s.name)}%: {s.band(now.value(s.name))}" for s in SLIDERS]
    mode = f" You are in {now.mode} mode." if now.mode else ""
    text = f"How to speak, as chosen with the sliders (0 to 100 %).{mode}\n" + "\n".join(lines)
    return ContextPart("sliders", text, trusted=True, priority=80, share=0.1, changing=chosen.auto_calibrate)


def _surge(names: Sequence[str]) -> ContextPart:
    """Return the style for this answer only. It is sent with the message, so the stable context before it does not
    change."""
    lines = [f"- {s.name} {SURGE_VALUE}%: {s.band(SURGE_VALUE)}" for s in SLIDERS if s.name in names]
    text = "\n".join(["In this answer only:", *lines])
    return ContextPart("surge", text, trusted=True, priority=81, changing=True)


def _etiquette(turn: TurnInfo) -> ContextPart:
    """Return the rules for marking claims, and for proposing memories where memory may not be written."""
    return ContextPart("etiquette", etiquette(turn.block), trusted=True, priority=79, share=0.05)


def etiquette(block: BlockConfig) -> str:
    """Return the rules by which an agent marks its claims, and proposes memories where it may not write them."""
    memory = block.memory
    if memory.enabled and memory.write_layers:
        return "\n".join([CLAIMS, CAPABILITIES.format(memory="read and written")])
    able = "read, not written" if memory.enabled else "neither read nor written"
    return "\n".join([CLAIMS, CAPABILITIES.format(memory=able), PROPOSE])
