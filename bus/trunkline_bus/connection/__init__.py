"""The connection to NATS: envelopes in and out, middleware, subscriptions."""
