"""What an agent means to do: a list of what is to do, and plans that the owner approves before anything is done."""
