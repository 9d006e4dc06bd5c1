"""The context windows of models: how many tokens a request may have."""

from trunkline.config.settings import Settings
from trunkline.contracts.models.price_list import installed_prices


class ContextWindows:
    """The context windows of models in tokens, by ``adapter/model``.

    Those that the owner set in ``[models.context_windows]`` have precedence over those of the price table. A model that
    neither has, has the window ``monitor.context_window``.

    Guarantees: no vendor is asked, and no method raises.

    Not guaranteed: that a window is the vendor's present one.
    """

    def __init__(self, settings: Settings) -> None:
        self._own = settings.models.context_windows
        self._default = settings.monitor.context_window
        self._prices = installed_prices(settings.models.prices)

    def find(self, model: str) -> int | None:
        """Return the window of a model; None if it is not known."""
        return self._own.get(model) or self._prices.find_context_window(model)

    def window(self, model: str) -> int:
        """Return the window of a model, or the default."""
        return self.find(model) or self._default

    def budgeted_window(self, model: str) -> int:
        """Return the window by which the context's budget is computed. Beyond the default it is counted only if the
        owner set it: that a model accepts more is no reason to send, and pay for, more with every message.
        """
        return self._own.get(model) or min(self.window(model), self._default)
