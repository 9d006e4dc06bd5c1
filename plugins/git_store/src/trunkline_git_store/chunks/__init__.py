"""Looks up chunks in the index: by id, by what is known of them, by links, and by a question."""
