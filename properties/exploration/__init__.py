"""Every state of a spec within small bounds, and pictures of them."""
