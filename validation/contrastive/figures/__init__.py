"""Figures of Meng and Wang (2024) and further studies, one module per figure."""
