"""Where the program ``trunkline`` begins: Ctrl-C is silent before anything else is imported."""

import signal


def use_default_sigint() -> None:
    """Have Ctrl-C kill the process, unless whoever started it wants it ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def use_python_sigint() -> None:
    """Have Ctrl-C raise KeyboardInterrupt, as Python does, unless it is ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def main() -> None:
    """Run a command and leave with its exit status."""
    use_default_sigint()
    from trunkline.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
