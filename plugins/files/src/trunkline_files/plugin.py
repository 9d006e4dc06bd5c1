"""The plugin: declares its tools and nothing else."""

from collections.abc import Iterable

import trunkline


@trunkline.hookimpl
def trunkline_tools() -> Iterable[trunkline.Tool]:
    """The file tools of a block's workspace."""
    import trunkline_files.aliases  # noqa: F401  gives the tools their other names
    from trunkline_files import (
        find_tool,
        image_tool,
        outgoing_tool,
        path_tools,
        read_tools,
        search_tool,
        write_tools,
    )

    return [
        read_tools.read_file,
        read_tools.list_directory,
        read_tools.file_info,
        image_tool.describe_image,
        outgoing_tool.send_file,
        search_tool.search_files,
        find_tool.find_files,
        write_tools.write_file,
        write_tools.append_to_file,
        write_tools.insert_in_file,
        write_tools.replace_in_file,
        write_tools.preview_change,
        path_tools.create_directory,
        path_tools.copy_file,
        path_tools.move_file,
        path_tools.delete_file,
    ]
