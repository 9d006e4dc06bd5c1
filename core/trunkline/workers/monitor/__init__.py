"""The monitor: the resident agent of each block. It runs turns and never touches a file, a tool or a credential."""
