"""The paper's read-only studies: they look at clean twins for analysis only, and nothing downstream reads them."""
