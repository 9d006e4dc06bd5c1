"""The compactor: selects the messages, and has a model summarise them, piece by piece if there are many."""

from trunkline import CompletionError
from trunkline.api.model import estimate_message_tokens
from trunkline.api.turn import CompactionJob, Compactor, SummaryDraft
from trunkline_compaction.prompts import summary_in, summary_prompt
from trunkline_compaction.selection import count_covered
from trunkline_compaction.settings import CompactionSettings
from trunkline_compaction.transcript_text import take_piece, transcript_text

PURPOSE = "summary"

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


class SummaryCompactor(Compactor):
    """Summarises the first messages of a conversation by a model."""

    def __init__(self, settings: CompactionSettings) -> None:
        self._settings = settings

    def is_due(self, tokens: int, window: int) -> bool:
        """Report whether the request filled the threshold of the window."""
        return tokens >= self._settings.threshold * window

    async def compact(self, job: CompactionJob) -> SummaryDraft | None:
        """Summarise all messages but the newest, after what the earlier summary tells. Raises CompletionError."""
        covered = job.previous.count if job.previous is not None else 0
        settings = self._settings
        keep = settings.keep_messages_on_command if job.cause == "command" else settings.keep_messages
        budget = int(settings.keep_share * job.window)
        count = count_covered(job.messages, covered, keep=keep, budget=budget)
        if count == covered or (job.cause == "automatic" and _saves_little(job, covered, count)):
            return None
        await job.progress(f"Summarising {count - covered} older messages …")
        return await _summarise(job, covered, count)


def _saves_little(job: CompactionJob, covered: int, count: int) -> bool:
    """Report whether a summary would save too little for its price. It is another part that fills the request then,
    such as the files and tools of the block, and a summary after each turn would not change that."""
    return estimate_message_tokens(job.messages[covered:count]) < MIN_SAVED_SHARE * job.window


async def _summarise(job: CompactionJob, covered: int, count: int) -> SummaryDraft:
    """Return the summary of the messages from ``covered`` to ``count``, each piece after the summary of those before
    it. A piece that the model does not take is halved."""
    rest = list(transcript_text(job.messages[covered:count]))
    summary, model = (job.previous.text, job.previous.model) if job.previous is not None else ("", "")
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
    """Return the summary and the model that wrote it. Raises CompletionError, also for an answer without a summary."""
    limit = min(MAX_SUMMARY_TOKENS, max(MIN_SUMMARY_TOKENS, int(job.window * SUMMARY_SHARE)))
    prompt = summary_prompt(previous, piece, job.focus)
    answer = await job.completer.complete(prompt, purpose=PURPOSE, max_tokens=limit)
    text = summary_in(answer.text)
    if not text:
        raise CompletionError("provider_error", "The model wrote no summary.")
    return text, f"{answer.adapter}/{answer.model}"
