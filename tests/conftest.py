"""What every test shares."""

from hypothesis import settings

# The first example compiles numba kernels, which takes longer than any sensible deadline.
settings.register_profile("online-svm", deadline=None, derandomize=True)
settings.load_profile("online-svm")
