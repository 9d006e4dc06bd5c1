"""Taking something out of all of history, for good (C43). ``target`` what to take out · ``rewriting`` the commits ·
``sweeping`` away with the objects that nothing leads to any more."""
