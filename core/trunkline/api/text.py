"""Text: secrets, untrusted text marked as data, wrapping, times for people, and arguments of programs."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunkline._util.frontmatter import parse_frontmatter as parse_frontmatter
    from trunkline._util.local_time import format_local_time as format_local_time
    from trunkline._util.local_time import local_to_utc as local_to_utc
    from trunkline._util.local_time import to_local_time as to_local_time
    from trunkline._util.secrets.redactor import Redactor as Redactor
    from trunkline._util.text import QUOTED as QUOTED
    from trunkline._util.text import argv_from_json as argv_from_json
    from trunkline._util.text import argv_of as argv_of
    from trunkline._util.text import display_width as display_width
    from trunkline._util.text import truncate_words as truncate_words
    from trunkline._util.text import wrap_text as wrap_text
    from trunkline._util.untrusted_text import escape_tag as escape_tag
    from trunkline._util.untrusted_text import unwrap_tool_result as unwrap_tool_result
    from trunkline._util.untrusted_text import wrap_context as wrap_context
else:
    from trunkline._util.lazy_names import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
