"""The light cluster: hosts checked, set up for MPI, and left as they were."""
