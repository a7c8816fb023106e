"""The bank of machines that differ in the weight of the classes (Nalbantov & Ivanov)."""
