"""Other programs' forms of text and annotations, from and to sentences and taggings."""
