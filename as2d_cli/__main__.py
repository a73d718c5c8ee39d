"""`as2d`, and `python -m as2d_cli`, which is the same where the command is not on the path."""

from __future__ import annotations

import signal


def main() -> None:
    """Run the command with the process's arguments and exit."""
    # Until the command heeds it, Ctrl-C ends the process as it does any other: imports take their time, and
    # where it comes in them is of no use to anybody. What is ignored from the start stays so.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from as2d_cli.cli.app import main as run

    run()


if __name__ == "__main__":
    main()
