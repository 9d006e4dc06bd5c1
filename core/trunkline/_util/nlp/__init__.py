"""Text analysis without a model and without I/O: tokens, languages, stems, synonyms, similarity and polarity."""
