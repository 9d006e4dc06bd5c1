"""Questions to the index. Changes nothing.

``content`` passages · ``words`` of a query · ``literal`` what no word index finds · ``shown`` how a hit looks ·
``names`` files by name · ``conversations`` their list.
"""
