"""Mails that no person has written. They are never answered: an answer could begin a loop, or reach a stranger."""

from email.message import EmailMessage

HEADERS = ("List-Id", "List-Post", "List-Unsubscribe", "X-Autoreply", "X-Autorespond", "X-Loop")
"""Headers of mailing lists and of programs that answer."""


def automatic_reason(message: EmailMessage) -> str:
    """Return why a mail counts as automatic, "" if a person may have written it."""
    submitted = str(message.get("Auto-Submitted", "no")).partition(";")[0].strip().lower()
    if submitted != "no":
        return f"Auto-Submitted is {submitted}"
    if str(message.get("Return-Path", "-")).strip() == "<>":
        return "it has no return path"
    if str(message.get("Precedence", "")).strip().lower() in ("bulk", "list", "junk", "auto_reply"):
        return "its precedence is that of a list"
    if message.get_content_type() == "multipart/report":
        return "it is a report of a mail server"
    found = next((name for name in HEADERS if message.get(name) is not None), "")
    return f"it has the header {found}" if found else ""
