"""The HTTP APIs of model vendors in scripted form: wire formats, lists of models and the vendors' rules."""
