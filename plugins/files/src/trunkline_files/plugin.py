"""The plugin: declares its tools and nothing else."""

from collections.abc import Iterable

import trunkline


@trunkline.hookimpl
def trunkline_tools() -> Iterable[trunkline.Tool]:
    """The file tools of a block's workspace (MB-F16)."""
    import trunkline_files.aliases  # noqa: F401  gives the tools their other names
    from trunkline_files import changing, finding, pictures, placing, reading, searching

    return [
        reading.read_file,
        reading.list_directory,
        reading.file_info,
        pictures.describe_image,
        searching.search_files,
        finding.find_files,
        changing.write_file,
        changing.append_to_file,
        changing.insert_in_file,
        changing.replace_in_file,
        changing.preview_change,
        placing.create_directory,
        placing.copy_file,
        placing.move_file,
        placing.delete_file,
    ]
