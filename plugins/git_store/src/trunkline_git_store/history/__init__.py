"""The history of files: changes of a path, blame, differences between versions, and reverting a change."""
