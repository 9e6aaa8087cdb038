"""Scores, calibration and significance as functions of arrays; nothing here depends on models."""
