"""A channel that answers letters: put NAME.txt into the folder, and NAME.answer appears beside it."""

import anyio

import trunkline
from trunkline.api.channel import Letter, LetterChannel


class Inbox(LetterChannel):
    name = "inbox"

    def __init__(self, folder):
        super().__init__(notes=folder / ".conversations.json")
        self.folder = folder

    async def letters(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        while True:
            for one in [one for one in self.folder.glob("*.txt") if one.stat().st_size]:
                yield Letter(f"{one.name} {one.stat().st_mtime_ns}", one.read_text(), origin=one)
            await anyio.sleep(0.2)

    async def show(self, letter, text, *, done):
        letter.origin.with_suffix(".answer").write_text(text)
        if done:
            letter.origin.unlink()

    async def tell_owner(self, text):
        with (self.folder / "approvals.answer").open("a") as file:
            file.write(f"{text}\n\n")

    def is_owner(self, letter):
        return True  # only the owner can write into this folder


@trunkline.hookimpl
def trunkline_channels(settings):
    return [Inbox(settings.home / "inbox")]
