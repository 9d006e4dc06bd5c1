"""The sentences that tell the owner of background tasks, above the line of the task."""

from trunkline.api.channel import SentenceCatalogue

CATALOGUES = (
    SentenceCatalogue("en", {"shell.ended": "A background task of block {block} has ended:"}),
    SentenceCatalogue("de", {"shell.ended": "Ein Programm im Hintergrund von Block {block} ist zu Ende:"}),
)
