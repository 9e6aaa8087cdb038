"""Arrays in, numbers out: scores, calibration, significance. Nothing here knows of models."""
