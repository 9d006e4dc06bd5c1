"""Models: the adapter's contract, and a client for single requests to a model."""
