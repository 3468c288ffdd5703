"""What children of the tests have imported when they begin: torch and Transformers, and nothing of this package."""

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer, Trainer
from transformers.models.bert import modeling_bert

torch.set_num_threads(1)

__all__ = ["AutoModelForSequenceClassification", "AutoTokenizer", "Trainer", "modeling_bert"]
