"""What a machine is: small readers of /proc and /sys that return facts."""
