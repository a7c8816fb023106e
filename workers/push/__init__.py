"""From files and data sets to the input of a feed."""
