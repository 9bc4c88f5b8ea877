"""What all tests share: how Hypothesis draws."""

from hypothesis import HealthCheck, settings

# No time limits, because machines are shared; the same examples each time, so that what passed on
# one machine passes on the next.
settings.register_profile(
    "shared", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("shared")
