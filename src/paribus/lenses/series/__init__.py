"""Arms in an order, such as releases: where between neighbours a figure steps."""
