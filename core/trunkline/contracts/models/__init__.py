"""Models: the adapter's contract, and a client for single questions to a model."""
