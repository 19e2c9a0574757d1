"""Samples of data: what they are like, which assumption of a problem they contradict, and problems made of them."""
