"""Stages and the store of their results: on disk or at a URL, with garbage collection."""
