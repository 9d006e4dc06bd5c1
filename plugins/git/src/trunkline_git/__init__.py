"""git in the sandbox, with protected branches."""
