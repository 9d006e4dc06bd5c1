"""The monitor worker runs the turns of the agents. It does not touch a file, run a tool or hold a credential."""
