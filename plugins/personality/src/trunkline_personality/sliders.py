"""The six sliders, their bands and the modes that set several at once. Pure tables."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Slider:
    """A dimension of how an agent speaks, 0 to 100. ``key`` is its canonical name for programs; ``bands`` describe the
    behaviour in five steps of 20; ``aliases`` are how people call it besides its name."""

    name: str
    key: str
    default: int
    bands: tuple[str, str, str, str, str]
    aliases: tuple[str, ...] = ()

    def band(self, value: int) -> str:
        """Return the behaviour for a value."""
        return self.bands[min(4, max(0, (value - 1) // 20))]


SLIDERS = (
    Slider(
        "verbosity",
        "Verbosity_Boost",
        28,
        (
            "Answer in a sentence or two.",
            "Be brief: the answer and what is needed to use it.",
            "Explain as much as the question needs.",
            "Explain thoroughly, with examples and background.",
            "Be exhaustive: every step, every alternative, every caveat.",
        ),
        ("verbosity boost", "verbose", "wordiness", "length", "detail"),
    ),
    Slider(
        "humor",
        "Humor_Amp",
        45,
        (
            "Be serious throughout.",
            "Be mostly serious; a dry remark at most.",
            "Be light where the subject allows.",
            "Be playful and witty.",
            "Joke freely, as long as the answer stays right.",
        ),
        ("humour", "humor amp", "funniness", "wit"),
    ),
    Slider(
        "creativity",
        "Creativity_Pulse",
        55,
        (
            "Keep to what is proven.",
            "Prefer the usual way; name another where it is clearly better.",
            "Weigh the usual way against new ones.",
            "Offer unusual ideas and connections.",
            "Be bold: surprise, combine, question the frame.",
        ),
        ("creativity pulse", "creative", "imagination"),
    ),
    Slider(
        "morality",
        "Morality_Compass",
        60,
        (
            "Leave judging to the person; speak of risks only where they are grave.",
            "Speak of ethics only when asked, or when harm is likely.",
            "Name ethical sides briefly where they matter.",
            "Weigh what it means for others, and say so.",
            "Put ethics first, and say plainly what speaks against a plan.",
        ),
        ("morality compass", "moral", "ethics"),
    ),
    Slider(
        "directness",
        "Directness_Filter",
        65,
        (
            "Be gentle and diplomatic; suggest rather than say.",
            "Be tactful, and soften criticism.",
            "Be polite and clear.",
            "Say plainly what you think, the conclusion first.",
            "Be blunt: no padding, no softening.",
        ),
        ("directness filter", "direct", "bluntness"),
    ),
    Slider(
        "technicality",
        "Tech_Depth",
        50,
        (
            "Use everyday words only; no jargon.",
            "Use simple words, and explain a technical term when it comes up.",
            "Use common technical terms.",
            "Speak as to a practitioner: precise terms, code, figures.",
            "Speak as to an expert: internals, edge cases, exact references.",
        ),
        ("tech depth", "technical depth", "technical", "tech", "techdepth"),
    ),
)
"""In the order in which they are shown."""

MODES: Mapping[str, Mapping[str, int]] = {
    "RESEARCH": {"technicality": 85, "directness": 75, "humor": 25},
    "CREATIVE": {"creativity": 90, "humor": 70, "verbosity": 60},
    "TECHNICAL": {"technicality": 90, "directness": 80, "humor": 15},
    "CONCISE": {"verbosity": 15, "directness": 85},
}
"""The slider values of each mode."""

PERSONALITIES: Mapping[str, str] = {
    "RESEARCH": "RESEARCH_ANALYST",
    "CREATIVE": "CREATIVE_DIRECTOR",
    "TECHNICAL": "TECHNICAL_COPILOT",
}
"""The personality that goes with a mode; the others leave it as it is."""


def find_slider(word: str) -> Slider | None:
    """The slider that people call so."""
    plain = " ".join(word.casefold().replace("_", " ").split())
    return next(
        (slider for slider in SLIDERS if plain in (slider.name, slider.key.casefold(), *slider.aliases)), None
    )
