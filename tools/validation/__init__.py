"""The proof of the statistics: simulations, exact checks, controls that must fail, live studies.

    noise     rows of launch medians with the same noise in both arms, made up and recorded
    studies   whole studies of such launches, through the code that judges real ones
    figures   the values that a check returns: a figure beside its bound
    errors, controls, exactness, families, constructed, units, awkward, speed   the checks
    live      those that run real studies
    checks    all of them in order
    page      docs/validation.md

Both `./dev validate` and the test suite call these; only `live` starts a process.
"""
