"""Recipes: their schema in sections, reading and checking them, grids, and those that come with the package."""
