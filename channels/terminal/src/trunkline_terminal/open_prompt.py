"""A question that is open on the input line."""

from typing import Generic

import anyio

from trunkline_terminal.screen import Prompt, T


class OpenPrompt(Generic[T]):
    """A question that is open. Only a typed answer counts: Enter is neither a yes nor a no."""

    def __init__(self, prompt: Prompt[T]) -> None:
        self.prompt = prompt
        self._answered = anyio.Event()
        self._answer: T | None = None

    def take(self, text: str) -> bool:
        """Try a line as the answer. Returns whether it was one."""
        self._answer = self.prompt.read(text)
        if self._answer is None:
            return False
        self._answered.set()
        return True

    async def answer(self) -> T | None:
        """The answer, once it is there."""
        await self._answered.wait()
        return self._answer
