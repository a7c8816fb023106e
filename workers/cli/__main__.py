"""`python -m workers.cli` is the command `online-svm`."""

from workers.cli import main

if __name__ == "__main__":
    main()
