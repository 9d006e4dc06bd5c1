"""``python -m benchmarks.lighthouse``: what Lighthouse gives each page of the web app for accessibility.

The platform, with data on every page, runs in this process, Debian's Chromium opens each page as on a phone. Lighthouse
is fetched from npm when it is first needed, as its lock says, into a folder of the user's cache; no script of a package
runs. Ends with 1 if a page has less than 100.
"""
