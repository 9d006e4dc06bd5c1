"""The plugin: declares its tools and nothing else."""

from collections.abc import Iterable

import trunkline


@trunkline.hookimpl
def trunkline_tools() -> Iterable[trunkline.Tool]:
    """The file tools of a block's workspace (MB-F16)."""
    from trunkline_files import changing, finding, placing, reading

    return [
        reading.read_file,
        reading.list_directory,
        reading.file_info,
        finding.search_files,
        finding.find_files,
        changing.write_file,
        changing.append_to_file,
        changing.replace_in_file,
        placing.create_directory,
        placing.copy_file,
        placing.move_file,
        placing.delete_file,
    ]
