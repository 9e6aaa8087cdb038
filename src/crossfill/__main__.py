"""`python -m crossfill` is the `crossfill` command."""

from crossfill.cli.app import main

if __name__ == "__main__":
    main()
