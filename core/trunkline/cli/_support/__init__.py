"""Functions that several commands share for policies, permissions, blocks and the audit log."""
