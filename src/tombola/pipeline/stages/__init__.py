"""The kinds of stage. Each is one file: its settings, the work, and a typed result.

Stages import what they need when they run, so that planning a study loads neither torch nor transformers.
"""
