"""Evaluation and calibration of a model on the cells of a grid."""
