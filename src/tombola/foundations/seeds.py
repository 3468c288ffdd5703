"""Seeds derived from a run's seed."""


def numbered_seed(seed: int, number: int) -> int:
    """Return the seed of the n-th of several random things of one run; number 0 uses the run's own seed."""
    import numpy as np

    return int(np.random.SeedSequence((seed, number)).generate_state(1)[0]) if number else seed
