"""Request and reply: services with endpoints, and the calls to them."""
