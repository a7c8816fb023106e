"""Colours that people with any colour vision tell apart, on white and on black.

Okabe and Ito (2008), "Color Universal Design". A colour is never the only sign: lines differ in
dash or width too, and states are words.
"""

ACCURACY = "#D55E00"  # vermillion
ANNOUNCED = "#0072B2"  # blue
BAND = "#56B4E9"  # sky blue
OTHER = "#009E73"  # bluish green
ALARM = "#CC79A7"  # reddish purple
NOTED = "#7D7D7D"  # grey, with a text beside it

BAND_ALPHA = 0.3
