"""Hides what may be a secret where settings are shown: values of telling names, and logins in addresses."""

import re

_LOGIN = re.compile(r"//[^@/\s]*@")
_TELLING = ("key", "token", "password", "secret", "credential")


def is_telling(name: str) -> bool:
    """Report whether the name of a setting says that its value is a secret."""
    return any(word in name.lower() for word in _TELLING)


def without_login(text: str) -> str:
    """Return the text without the user and password of an address."""
    return _LOGIN.sub("//...@", text)
