"""`python -m as2d_cli` is `as2d`, where the command is not on the path."""

from as2d_cli.cli.app import main

if __name__ == "__main__":
    main()
