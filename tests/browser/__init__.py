"""The page in a real browser, before real servers.

A package, unlike its neighbours, so that fixtures can have its scope: while Playwright's loop runs,
no other test could run its own.
"""
