"""Words: how a text is taken apart, which language it is in, and what its words have in common with their inflections.

``split`` a text into words · ``languages`` told by their commonest words · ``stems`` of a text, and of a question.
"""
