"""The sandbox: the contract of a backend, the limits of a program, and the record of a detached program."""
