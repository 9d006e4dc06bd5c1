"""Plans that the owner approves before work begins, and lists of open tasks."""
