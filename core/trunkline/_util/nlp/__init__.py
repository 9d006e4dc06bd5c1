"""Words: how a text is taken apart, which language it is in, what its words have in common with their inflections, and
what two texts have in common. No model, no I/O.

``split`` a text into words · ``languages`` told by their commonest words · ``stems`` of a text, and of a question ·
``synonyms`` that count as one word · ``likeness`` of two texts · ``claims``: what a text says yes or no to ·
``titles`` made from a text.
"""
