"""The monitor worker: runs the turns of the agents. It reads and writes no file, runs no tool and has no credential."""
