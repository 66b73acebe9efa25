"""Rows of the tables: compositions of named parts, and what follows from them."""
