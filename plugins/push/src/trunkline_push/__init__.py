"""Push notices (Web Push): tells a browser about approvals while its tab is closed."""
