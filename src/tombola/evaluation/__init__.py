"""Evaluation: predictions in data order, metrics with standard errors, intervals over seeds."""
