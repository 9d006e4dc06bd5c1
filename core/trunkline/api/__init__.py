"""What authors of plugins import besides ``trunkline`` itself: one module for each kind of extension."""
