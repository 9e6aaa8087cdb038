"""Sentences and corpora, cells and grids, partitions of cells, and similarities of languages."""
