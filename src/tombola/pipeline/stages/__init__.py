"""The kinds of stage. Each is one file: a typed spec, what it does, and a typed way to read its result.

Stages import what they need when they run, so that planning a study loads neither torch nor transformers.
"""
