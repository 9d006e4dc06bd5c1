"""The tables of the derived index."""

VERSION = 5
"""Of the tables and of what stands in them: an index of another version is made anew."""

_FILES = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE files(id INTEGER PRIMARY KEY, path TEXT UNIQUE, blob TEXT, size INTEGER, height INTEGER);
CREATE TABLE conversations(
    file INTEGER PRIMARY KEY, id TEXT, block TEXT, title TEXT, created INTEGER, updated INTEGER, count INTEGER);
CREATE INDEX conversations_by_id ON conversations(id);
CREATE INDEX conversations_by_update ON conversations(updated);
"""

_PASSAGES = """
CREATE TABLE passages(
    id INTEGER PRIMARY KEY, file INTEGER, line INTEGER, page INTEGER, kind TEXT, name TEXT, at INTEGER,
    speaker TEXT, confidence REAL, conversation TEXT);
CREATE INDEX passages_of ON passages(file, line);
CREATE INDEX passages_named ON passages(name) WHERE name != '';
CREATE INDEX passages_at ON passages(at) WHERE at != 0;
CREATE TABLE tags(tag TEXT, passage INTEGER, PRIMARY KEY(tag, passage)) WITHOUT ROWID;
CREATE INDEX tags_of ON tags(passage);
CREATE TABLE links(passage INTEGER, target TEXT, type TEXT, strength REAL);
CREATE INDEX links_of ON links(passage);
CREATE INDEX links_to ON links(target);
CREATE VIRTUAL TABLE words USING fts5(
    text, content='', contentless_delete=1, tokenize="unicode61 remove_diacritics 2");
"""

SCHEMA = f"PRAGMA user_version = {VERSION};{_FILES}{_PASSAGES}"

TABLES = ("meta", "files", "conversations", "passages", "tags", "links")
"""What is emptied to begin anew, the words aside."""
