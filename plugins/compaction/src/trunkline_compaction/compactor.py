"""The compactor: selects the messages, and has a model summarise them, piece by piece if there are many."""

from dataclasses import replace
from datetime import UTC, datetime

from trunkline import CompletionError, Memory
from trunkline.api.memory import read_text, update_text
from trunkline.api.model import estimate_message_tokens
from trunkline.api.turn import CompactionJob, Compactor, SummaryDraft
from trunkline_compaction.memory_summary import summary_of, with_summary
from trunkline_compaction.prompts import summary_in, summary_prompt
from trunkline_compaction.selection import count_covered
from trunkline_compaction.settings import CompactionSettings
from trunkline_compaction.transcript_text import take_piece, transcript_text

PURPOSE = "summary"

BLOCK_MEMORY = "memory.md"
"""The file of a block to which a rebirth writes."""

PIECE_SHARE = 0.5
"""The share of the window that a piece of the conversation may fill; the rest is for instructions and summaries."""

CHARACTERS_PER_TOKEN = 3
"""A low estimate, so that a piece fits into the window in any common language."""

MIN_PIECE_CHARS = 1_000
"""The size of the smallest piece. A model that does not take it cannot summarise."""

MIN_SAVED_SHARE = 0.05
"""The smallest share of the window that an automatic compaction replaces."""

MIN_SUMMARY_TOKENS, MAX_SUMMARY_TOKENS, SUMMARY_SHARE = 512, 8_000, 0.125
"""The largest number of tokens of a summary is this share of the conversation's window, within the two limits."""

LIMIT_FACTORS = (1, 4)
"""The limit of each attempt at a summary. A model that thinks first may use up the first one."""


class SummaryCompactor(Compactor):
    """Summarises the first messages of a conversation by a model."""

    def __init__(self, settings: CompactionSettings) -> None:
        self._settings = settings

    def is_due(self, tokens: int, window: int) -> bool:
        """Report whether the request filled the threshold of the window."""
        return tokens >= self._settings.threshold * self._counted(window)

    async def compact(self, job: CompactionJob) -> SummaryDraft | None:
        """Summarise all messages but the newest, after what the earlier summary tells. Raises CompletionError."""
        job = replace(job, window=self._counted(job.window))
        covered = job.previous.count if job.previous is not None else 0
        memory = job.memory if self._is_rebirth(job) else None
        keep, budget = self._keep(job) if memory is None else 0, int(self._settings.keep_share * job.window)
        count = count_covered(job.messages, covered, keep=keep, budget=budget)
        if count == covered or (job.cause == "automatic" and _saves_little(job, covered, count)):
            return None
        await job.progress(f"Summarising {count - covered} older messages …")
        told = job.previous.text if job.previous is not None else ""
        if memory is None:
            return await _summarise(job, covered, count, told)
        return await _remember(memory, job, covered, count, told)

    def _counted(self, window: int) -> int:
        return min(window, self._settings.max_window)

    def _is_rebirth(self, job: CompactionJob) -> bool:
        return job.rebirth or (self._settings.rebirth and job.cause == "automatic")

    def _keep(self, job: CompactionJob) -> int:
        settings = self._settings
        return settings.keep_messages_on_command if job.cause == "command" else settings.keep_messages


async def _remember(memory: Memory, job: CompactionJob, covered: int, count: int, told: str) -> SummaryDraft:
    """Summarise, and write the summary to ``memory.md``. The model also gets the summary that the file has, so that the
    new one contains what was known before this conversation."""
    known = summary_of(await read_text(memory, BLOCK_MEMORY))
    told = "\n\n".join(part for part in (known, told if told not in known else "") if part)
    draft = await _summarise(job, covered, count, told)
    at = datetime.now(UTC)
    await update_text(memory, BLOCK_MEMORY, lambda text: with_summary(text, draft.text, at, "Memory"))
    return draft


def _saves_little(job: CompactionJob, covered: int, count: int) -> bool:
    """Report whether a summary would save too little for its price. It is another part that fills the request then,
    such as the files and tools of the block, and a summary after each turn would not change that."""
    return estimate_message_tokens(job.messages[covered:count]) < MIN_SAVED_SHARE * job.window


async def _summarise(job: CompactionJob, covered: int, count: int, told: str) -> SummaryDraft:
    """Return the summary of the messages from ``covered`` to ``count``, each piece after the summary of those before
    it, and the first after ``told``. A piece that the model does not take is halved."""
    rest = list(transcript_text(job.messages[covered:count]))
    summary, model = told, job.previous.model if job.previous is not None else ""
    size = max(MIN_PIECE_CHARS, int(job.summary_window * PIECE_SHARE) * CHARACTERS_PER_TOKEN)
    while rest:
        piece, after = take_piece(rest, size)
        try:
            summary, model = await _ask(job, summary, piece)
        except CompletionError as error:
            if error.code != "context_overflow" or size <= MIN_PIECE_CHARS:
                raise
            size = max(MIN_PIECE_CHARS, size // 2)
        else:
            rest = after
    return SummaryDraft(text=summary, count=count, model=model)


async def _ask(job: CompactionJob, previous: str, piece: str) -> tuple[str, str]:
    """Return the summary and the model that wrote it. Raises CompletionError, also for an answer without a summary, and
    for one that breaks off: what it leaves out would be lost to the conversation."""
    limit = min(MAX_SUMMARY_TOKENS, max(MIN_SUMMARY_TOKENS, int(job.window * SUMMARY_SHARE)))
    prompt = summary_prompt(previous, piece, job.focus)
    for factor in LIMIT_FACTORS:
        answer = await job.completer.complete(prompt, purpose=PURPOSE, max_tokens=factor * limit)
        if answer.finish_reason != "max_tokens":
            break
    text = summary_in(answer.text)
    if not text:
        raise CompletionError("provider_error", "The model wrote no summary.")
    if answer.finish_reason != "stop":
        raise CompletionError("provider_error", "The summary breaks off.")
    return text, f"{answer.adapter}/{answer.model}"
