"""Adaptation: a handful of labelled sentences → a better cell; text alone → a new language."""
