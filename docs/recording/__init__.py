"""The recording at the top of the README: the real program, driven through a story in a real terminal.

``story`` plays it · ``film`` turns what was on the screen into one animated picture. ``make recording`` does both.
"""
