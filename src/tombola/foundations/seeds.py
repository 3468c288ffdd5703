"""Seeds that follow from a run's seed."""


def numbered_seed(seed: int, number: int) -> int:
    """The seed of the n-th of several random things of one run; the first one's, number 0, is the run's own."""
    import numpy as np

    return int(np.random.SeedSequence((seed, number)).generate_state(1)[0]) if number else seed
