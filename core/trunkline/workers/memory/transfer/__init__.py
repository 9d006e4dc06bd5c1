"""Memory on its way: out of this root into an archive, and out of an archive into this root."""
