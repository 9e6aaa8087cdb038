"""Corpora in and out: files of many kinds to a Grid, batches, and the synthetic grid."""
