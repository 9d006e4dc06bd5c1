"""What our own tests share and nobody else needs: processes to kill, terminals, searches of a home's bytes.

What authors of plugins need is in ``trunkline.testing``. Nothing here is in the wheel.
"""
