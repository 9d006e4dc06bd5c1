"""Tools by which the owner sees and decides who may enter, in a conversation."""
