"""Push examples from files and data sets to the input of a feed."""
