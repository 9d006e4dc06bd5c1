"""Side-by-side measurements, each in one run on one machine. Never run as timed tests."""
