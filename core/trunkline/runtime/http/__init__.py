"""What every HTTP surface of ours has in common: who may come in, the gate in front, and serving on a socket."""
