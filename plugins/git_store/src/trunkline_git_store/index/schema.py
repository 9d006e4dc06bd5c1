"""The tables of the derived index."""

import re

VERSION = 13
"""The version of the tables and their content. An index of another version is rebuilt."""

_FILES = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE files(id INTEGER PRIMARY KEY, path TEXT UNIQUE, blob TEXT, size INTEGER, height INTEGER);
CREATE TABLE conversations(
    file INTEGER PRIMARY KEY, id TEXT, block TEXT, title TEXT, created INTEGER, updated INTEGER, count INTEGER,
    one_shot INTEGER, pinned INTEGER, archived INTEGER, origin TEXT, origin_turn TEXT, origin_step INTEGER);
CREATE INDEX conversations_by_id ON conversations(id);
CREATE INDEX conversations_by_update ON conversations(updated);
CREATE INDEX conversations_by_origin ON conversations(origin) WHERE origin IS NOT NULL;
"""

_PASSAGES = """
CREATE TABLE passages(
    id INTEGER PRIMARY KEY, file INTEGER, line INTEGER, page INTEGER, kind TEXT, name TEXT, at INTEGER,
    speaker TEXT, role TEXT, confidence REAL, conversation TEXT, asks INTEGER,
    vector INTEGER);
CREATE INDEX passages_of ON passages(file, line);
CREATE INDEX passages_named ON passages(name) WHERE name != '';
CREATE INDEX passages_said_in ON passages(conversation) WHERE conversation != '';
CREATE INDEX passages_said_by ON passages(speaker) WHERE speaker != '';
CREATE INDEX passages_said_as ON passages(role) WHERE role != '';
CREATE INDEX passages_of_kind ON passages(kind);
CREATE INDEX passages_at ON passages(at) WHERE at != 0;
CREATE INDEX passages_without_vector ON passages(id) WHERE vector IS NULL;
CREATE INDEX passages_of_vector ON passages(vector) WHERE vector > 0;
CREATE TABLE asides(passage INTEGER PRIMARY KEY);
CREATE TABLE tags(tag TEXT, passage INTEGER, PRIMARY KEY(tag, passage)) WITHOUT ROWID;
CREATE INDEX tags_of ON tags(passage);
CREATE TABLE links(passage INTEGER, target TEXT, type TEXT, strength REAL);
CREATE INDEX links_of ON links(passage);
CREATE INDEX links_to ON links(target);
CREATE TABLE languages(name TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE VIRTUAL TABLE words USING fts5(
    text, before, after, tags, content='', contentless_delete=1, tokenize="unicode61 remove_diacritics 2");
CREATE VIRTUAL TABLE vocabulary USING fts5vocab(words, row);
"""

_CHUNKS = """
CREATE TABLE chunks(
    passage INTEGER PRIMARY KEY, id TEXT, place TEXT, archived INTEGER, type TEXT, at INTEGER, modified INTEGER,
    expires INTEGER, tokens INTEGER, confidence REAL, conversation TEXT, fault TEXT);
CREATE INDEX chunks_by_id ON chunks(id);
CREATE INDEX chunks_at ON chunks(at, id);
CREATE INDEX chunks_by_place ON chunks(place);
CREATE INDEX chunks_by_conversation ON chunks(conversation, at, id) WHERE conversation != '';
CREATE INDEX chunks_broken ON chunks(fault) WHERE fault != '';
CREATE INDEX chunks_expiring ON chunks(expires) WHERE expires != 0;
CREATE TABLE uses(chunk TEXT PRIMARY KEY, at INTEGER, count INTEGER) WITHOUT ROWID;
"""
"""The tables that only chunks have. The table ``uses`` records reads: it is not committed, and is lost with
the cache."""

SCHEMA = f"PRAGMA user_version = {VERSION};{_FILES}{_PASSAGES}{_CHUNKS}"

TABLES = ("meta", "files", "conversations", "passages", "asides", "tags", "links", "chunks", "languages")
"""The tables that are emptied for a reindex, except the words."""

INDICES = tuple(re.findall(r"CREATE INDEX (\w+) (ON [^;]+);", SCHEMA))
"""The name and the columns of each index: those of a full table are sooner made than kept while it fills."""
