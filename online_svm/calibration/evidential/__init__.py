"""Calibration by belief functions (Xu, Davoine, Zha & Denoeux 2016).

Maps from scores to mass functions on {0, 1}, and rules that combine masses, live here; maps to
point probabilities do not. May import the two-class maps of `calibration`, `compiled`, `storage`,
`types` and `errors`.
"""
