"""Recipes: their settings and schema, reading, checking, grids, and the built-in recipes."""
