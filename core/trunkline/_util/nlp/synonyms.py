"""A short list of synonyms about work, programs and tastes, by language."""

from collections.abc import Mapping

SYNONYMS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "english": (
        ("prefer", "prefers", "preference", "preferences", "like", "likes", "favorite", "favourite"),
        ("decide", "decided", "decision", "chose", "choice", "chosen"),
        ("error", "bug", "issue", "fault", "problem", "failure", "exception"),
        ("database", "db"),
        ("config", "configuration", "settings", "preferences"),
        ("repo", "repository"),
        ("docs", "documentation"),
        ("auth", "authentication", "login"),
        ("fix", "repair", "solve", "mend"),
        ("create", "make", "build", "generate"),
        ("delete", "remove", "erase", "drop"),
        ("find", "search", "locate", "look"),
        ("show", "display", "print", "list"),
        ("change", "edit", "modify", "update"),
        ("file", "document"),
        ("folder", "directory"),
        ("run", "execute", "start", "launch"),
        ("fail", "break", "broken", "crash"),
        ("write", "compose", "draft"),
        ("explain", "describe"),
        ("test", "check", "verify"),
    ),
    "german": (
        ("mögen", "mag", "bevorzugen", "bevorzugt", "lieblings"),
        ("entscheiden", "entschieden", "entscheidung", "gewählt", "wahl"),
        ("fehler", "problem", "störung", "ausnahme"),
        ("datenbank", "db"),
        ("konfiguration", "einstellungen"),
        ("anmeldung", "login"),
        ("beheben", "reparieren", "lösen"),
        ("erstellen", "anlegen", "erzeugen", "bauen"),
        ("löschen", "entfernen"),
        ("finden", "suchen"),
        ("zeigen", "anzeigen", "auflisten"),
        ("ändern", "bearbeiten", "anpassen"),
        ("datei", "dokument"),
        ("ordner", "verzeichnis"),
        ("ausführen", "starten"),
        ("erklären", "beschreiben"),
        ("testen", "prüfen"),
    ),
}
"""Groups of synonyms by language, as ``languages`` names them. The first group of a word counts."""


def synonyms(word: str, language: str) -> tuple[str, ...]:
    """Return the synonyms of a word in a language, in the order of the list."""
    groups = (group for group in SYNONYMS.get(language, ()) if word in group)
    return tuple(dict.fromkeys(other for group in groups for other in group if other != word))
