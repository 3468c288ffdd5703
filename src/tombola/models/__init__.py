"""Pre-trained models: find, load and dissect them; controls that destroy what they learned."""
