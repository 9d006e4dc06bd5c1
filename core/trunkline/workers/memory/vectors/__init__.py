"""Vectors of passages: derived, beside the index, and dear to make. So they have a file of their own, known by what was
embedded: an index that is made anew finds them there.

``space`` the file, and what lies close in it · ``filling`` making the vectors in the background · ``embedding``
asking for them · ``choosing`` who makes them.
"""
