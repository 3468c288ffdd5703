"""Results: the typed record of a run, statistics over seeds, and decisions."""
