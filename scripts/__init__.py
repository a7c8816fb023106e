"""Programs that people run by hand. They are not in the wheel, and nothing in it imports them."""
