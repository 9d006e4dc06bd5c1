"""The adapter without a model or network: it searches memory and quotes what it finds."""
