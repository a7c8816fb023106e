"""Calibration by belief functions (Xu, Davoine, Zha & Denoeux 2016)."""
