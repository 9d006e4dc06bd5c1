"""The sandbox: the backend's contract, the limits of a program, and the record of its end."""
