"""How good a model is: predictions in data order, metrics with their standard errors, intervals over seeds."""
