"""The testing kit for plugins: a platform in one process, scripted models, and a contract suite per kind of plugin."""
