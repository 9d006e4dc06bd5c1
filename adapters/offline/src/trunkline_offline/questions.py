"""Which words of a question are worth looking for. No I/O in here."""

import re

_GREETING_WORDS = """
hello hi hey hallo moin servus help hilfe thanks thank you danke good morning evening afternoon day guten morgen tag
abend there who are what can do
"""
_STOP_WORDS = """
a about all also am an and any are as at be been but by can could did do does for from had has have he her him his how
i if in into is it its know me mean my no not of on one or our please remember said say says she should so some
something tell than that the their them then there these they thing things this those to us was we were what when
where which who whom whose why will with would you your
aber als am an auch auf aus bei bin bist das dass dein dem den der des die du ein eine einem einen einer er es für habe
haben hat ich ihr im in ist ja kann man mein mir mit nach nicht noch oder sich sie sind so über um und uns von vor war
was weißt wann warum wenn wer wie wir wird wo zu zum zur
"""
GREETINGS = frozenset(_GREETING_WORDS.split())
STOP_WORDS = frozenset(_STOP_WORDS.split())


def is_greeting(text: str) -> bool:
    """Report whether the message only greets or asks for help."""
    words = re.findall(r"\w+", text.lower())
    return len(words) <= 5 and all(word in GREETINGS for word in words)


def keywords(text: str) -> list[str]:
    """The words of the question that carry meaning, each once, in order; if none does, all words."""
    words = list(dict.fromkeys(re.findall(r"\w[\w'’-]*", text.lower())))
    return [word for word in words if word not in STOP_WORDS] or words
