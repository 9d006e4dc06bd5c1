"""Describes the errors of a model vendor in words, for a person at the terminal. Asks nobody."""

_WORDS = {
    "authentication": "it does not accept the key",
    "unavailable": "nothing answers at its address",
    "timeout": "it did not answer in time",
    "refused": "it refused the request; the model's name may be wrong",
    "rate_limited": "it has had too many requests for now",
    "bad_response": "what it answers is not the protocol that was expected",
    "interrupted": "it broke off in the middle of the answer",
}


def describe_fault(fault: str, unset_key: str = "") -> str:
    """Return what a fault means, as the end of a sentence. ``unset_key`` is the variable of a key that was not sent."""
    if fault == "authentication" and unset_key:
        return f"it wants a key, and {unset_key} is not set"
    return _WORDS.get(fault, fault)
