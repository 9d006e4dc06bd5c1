"""The testing kit for plugins: a platform in one process, scripted models, and a contract suite for each kind of
plugin.
"""
