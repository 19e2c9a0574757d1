"""Explanation of a problem in words, with predicted time, memory and size of the result for each method."""

from meanfield.explanation.explanation import Explanation, explain, in_words
from meanfield.explanation.prediction import Prediction

__all__ = ["Explanation", "Prediction", "explain", "in_words"]
