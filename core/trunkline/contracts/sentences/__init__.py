"""The sentences that people meet in channels, in every language: one registry by key, with English and German."""
