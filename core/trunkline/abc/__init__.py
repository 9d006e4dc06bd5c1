"""What plugins implement: one small protocol a file. Hooks declare such objects, the workers call them."""
