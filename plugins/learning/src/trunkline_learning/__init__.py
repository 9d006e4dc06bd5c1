"""Learning from finished turns, in the background: facts, episodes, a playbook and a profile."""
