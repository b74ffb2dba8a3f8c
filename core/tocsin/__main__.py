"""`python -m tocsin`."""

from tocsin.cli import main

if __name__ == "__main__":
    main()
