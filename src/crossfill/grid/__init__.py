"""What there is: sentences, cells, partitions of them, and which languages are alike."""
