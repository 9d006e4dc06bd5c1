"""The testing kit for plugins and for the platform itself: scripted models, contract suites, a whole platform."""
