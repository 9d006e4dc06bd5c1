"""Programs in namespaces of their own, by bubblewrap."""
