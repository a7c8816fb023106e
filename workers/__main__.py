"""`python -m workers` is the command `online-svm`."""

from workers.cli import main

main()
