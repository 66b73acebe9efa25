from tests.actions.conftest import scene  # noqa: F401  (the small captured scene with known smoke)
