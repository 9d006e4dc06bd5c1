"""Skills: how something is done here, in folders of memory. Listed briefly; read when they are needed."""
