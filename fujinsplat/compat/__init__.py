"""Work-arounds for other libraries, each with the versions it was tested with and a test that says when it can go."""
