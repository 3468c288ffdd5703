"""From a recipe to finished stages: references, kinds of stage, planning, and the engines that run a plan."""
