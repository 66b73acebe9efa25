"""Look at one colour action, or apply it to a picture."""
