"""Reading and writing corpora: data folders, file formats, downloads, text to be tagged, and the synthetic grid."""
