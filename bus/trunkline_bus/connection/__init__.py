"""The connection to NATS: encoding and decoding of envelopes, middleware, subscriptions."""
