"""The public API for authors of plugins besides ``trunkline`` itself: one module for each kind of extension."""
