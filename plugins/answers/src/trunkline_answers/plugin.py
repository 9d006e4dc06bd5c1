"""The plugin: the middleware around requests. It has no settings."""

from collections.abc import Iterable

import trunkline
from trunkline.api.model import ModelMiddleware


class AnswersPlugin:
    """Yields the middleware."""

    @trunkline.hookimpl
    def trunkline_model_middleware(self) -> Iterable[ModelMiddleware]:
        """Yield the middleware that checks answers."""
        from trunkline_answers.middleware import AnswerMiddleware

        return [AnswerMiddleware()]
