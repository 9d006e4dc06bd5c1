"""``appends``: what one more message costs a conversation, short or long."""

from collections.abc import AsyncIterator

from benchmarks.memory.bench import NOTE, Bench, BenchRow, spread, timed
from trunkline.contracts.conversations.messages import AppendConversation, Message


async def measure(bench: Bench) -> AsyncIterator[BenchRow]:
    """Append a message at a time to conversations of some length."""
    async with bench.store() as store:
        for length in (10, 1_000):
            await store.append_conversation(_append(length, 0, length))

            async def one(number: int, length: int = length) -> object:
                return await store.append_conversation(_append(length, length + number, 1))

            seconds = await timed(bench.sized(100, least=10), one)
            yield BenchRow(f"append to {length} messages", spread(seconds))


def _append(length: int, first: int, count: int) -> AppendConversation:
    messages = tuple(
        Message(id=f"m{number}", role="user", content=NOTE) for number in range(first, first + count)
    )
    return AppendConversation(block="main", conversation=f"c{length}", messages=messages, actor="gateway")
