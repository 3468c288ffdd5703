"""From a recipe to finished stages: references, stage kinds, planning, and the engines that run a plan."""
