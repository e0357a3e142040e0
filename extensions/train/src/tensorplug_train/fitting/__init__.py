"""Fitting: from a model, data and an objective to a trained model."""
