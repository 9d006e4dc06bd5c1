"""Reads how the owner wants to be told, from ``preferences.toml`` in memory."""

import logging

from trunkline._util.toml import SettingsFileError, read_settings
from trunkline.contracts.blocks.notice_preferences import NoticePreferences, NoticePreferencesFound
from trunkline.contracts.blocks.preferences import PREFERENCES, Preferences
from trunkline.contracts.memory.files import ReadManyMemory
from trunkline.contracts.memory.subjects import MEMORY_READ_MANY
from trunkline_bus import Bus

log = logging.getLogger(__name__)


async def read_notice_preferences(bus: Bus) -> NoticePreferencesFound:
    """Return the preferences of now. With a file that cannot be read all channels tell the owner at once, because a
    notice must not be lost for a typing error. Raises BusError when memory does not answer.
    """
    request = ReadManyMemory(paths=(PREFERENCES,))
    reply = await bus.call(MEMORY_READ_MANY, request, timeout=10.0, repeatable=True)
    for file in reply.files:
        try:
            if file.unread:
                raise SettingsFileError(file.unread)
            found = read_settings(file.path, file.content, Preferences)
        except SettingsFileError as error:
            log.warning("notices go to all channels at once: %s", error)
        else:
            return NoticePreferencesFound(preferences=found.notices, language=found.language)
    return NoticePreferencesFound(preferences=NoticePreferences())
