"""No test may fail because the machine is busy."""

import time

from hypothesis import given, settings
from hypothesis import strategies as st


@settings(max_examples=2)
@given(st.integers())
def test_an_example_may_take_any_time(number: int) -> None:
    del number
    time.sleep(0.3)  # Hypothesis' own deadline is 0.2 seconds
