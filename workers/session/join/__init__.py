"""A feed whose input is a join: the answers of other feeds that score the same ids."""
