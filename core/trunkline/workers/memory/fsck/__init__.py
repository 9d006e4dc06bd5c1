"""Finding out what a disk, a power cut or another program did to a memory root, and mending what can be mended.

``objects`` whether what git stored is whole · ``aside`` what is broken is put where it harms nobody · ``healing``
making lost objects again from the files · ``salvage`` what is left of a
broken pack · ``reach`` whether everything that history needs is there · ``examination``
all of it, told finding by finding · ``offline`` the same for a root that nobody holds.
"""
