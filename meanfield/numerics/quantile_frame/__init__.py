"""Fokker-Planck equation in the Gaussian quantile frame: points of fixed mass that follow the weights."""
