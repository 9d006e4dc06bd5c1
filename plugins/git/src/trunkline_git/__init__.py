"""git for agents, with a guard of protected branches."""
