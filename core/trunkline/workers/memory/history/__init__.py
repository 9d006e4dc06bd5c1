"""What was: the changes of a path, who wrote each line, what differs between versions, and taking a change back.

``trail`` a derived table of which commits touched which path · ``changes`` a path's history · ``lines`` what two texts
have in common · ``blame`` each line's commit · ``difference`` two versions side by side · ``undo`` taking back.
"""
