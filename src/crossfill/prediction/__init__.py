"""Prediction: from features and heads to probabilities, and from these to labels, spans and label sets."""
