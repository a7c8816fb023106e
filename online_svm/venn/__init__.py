"""Inductive Venn prediction: categories to multiprobabilities."""
