"""Pre-trained models: finding, opening and taking them apart; controls that destroy what they learned."""
