"""The paper's read-only studies."""
