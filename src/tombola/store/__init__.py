"""Stages and the store that keeps their results: on disk, behind a URL, and cleaned of what nothing needs."""
