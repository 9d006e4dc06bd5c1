"""What commands do with what is the owner's alone: permissions, policies and the audit log."""
