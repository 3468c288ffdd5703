"""Words as people type them: where they stand in a text, which keys lie side by side, which letters look alike, and
which words mean the same."""
