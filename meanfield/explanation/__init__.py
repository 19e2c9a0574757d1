"""A problem in words, with predicted time, memory and size of the result for each method."""

from meanfield.explanation.explanation import Explanation, explain
from meanfield.families.contrastive.explanation.predictions import Prediction
from meanfield.families.contrastive.explanation.wording import in_words

__all__ = ["Explanation", "Prediction", "explain", "in_words"]
