"""The form of the archives in which memory travels: tar files that say what they hold and prove that they are whole.

Knows files and tar, and nothing of git, the bus or memory's meaning.
"""
