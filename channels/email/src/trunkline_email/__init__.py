"""The e-mail channel: one mailbox through which the owner talks with agents and decides about their calls."""
