"""What people run by hand. It is not part of the wheel, and nothing in the wheel imports it."""
