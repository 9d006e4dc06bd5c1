"""The entry point of the program ``trunkline``. It makes Ctrl-C silent before it imports anything else."""

import signal


def use_default_sigint() -> None:
    """Let Ctrl-C kill the process, unless the parent process set it to be ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def use_python_sigint() -> None:
    """Let Ctrl-C raise KeyboardInterrupt, as Python does by default, unless it is ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def main() -> None:
    """Run a command and exit with its status."""
    use_default_sigint()
    from trunkline.cli.main import main as run

    try:
        run()
    except KeyboardInterrupt:  # pressed after the command's end, before ``run`` had restored the default
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.raise_signal(signal.SIGINT)


if __name__ == "__main__":
    main()
