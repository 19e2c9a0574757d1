"""A problem in words, with predicted time, memory and size of the result for each method."""

from meanfield.explanation.explanation import Explanation, explain
from meanfield.explanation.predictions import Prediction
from meanfield.explanation.words import in_words

__all__ = ["Explanation", "Prediction", "explain", "in_words"]
