"""Reason codes: stable names, for programs, of what the sentences of words/ say to people.

A verdict stores "within_margin"; words/verdicts.py makes the sentence of it.
"""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why a verdict has its word; docs/verdict-schema.json explains each."""

    # The interval against the margin.
    BEYOND_MARGIN = "beyond_margin"
    WITHIN_MARGIN = "within_margin"
    REAL_WITHIN_MARGIN = "real_within_margin"
    AT_MARGIN = "at_margin"
    ACROSS_MARGIN = "across_margin"
    SIZE_UNCERTAIN = "size_uncertain"
    TOO_FEW_BLOCKS = "too_few_blocks"
    # Families, looks, and what changes with time.
    NOT_SUPPORTED_AMONG_CASES = "not_supported_among_cases"
    NOT_SUPPORTED_AMONG_PAIRS = "not_supported_among_pairs"
    BEFORE_NEXT_LOOK = "before_next_look"
    ENDED_BEFORE_FIRST_LOOK = "ended_before_first_look"
    PARTS_UNDECIDED = "parts_undecided"
    STEP_UNDECIDED = "step_undecided"
    # Nothing to compare.
    NO_COMPLETE_BLOCK = "no_complete_block"
    CASE_NOT_IN_BOTH_ARMS = "case_not_in_both_arms"
    TOO_FEW_SAMPLES = "too_few_samples"
    # Launches that failed.
    FAILURES_DIFFER = "failures_differ"
    TOO_MANY_FAILURES = "too_many_failures"
    # What withholds a verdict on a study.
    UNEXPLAINED_DIFFERENCES = "unexplained_differences"
    TOO_COARSE = "too_coarse"
    FACTS_LOST = "facts_lost"
    FAILURES_LOST = "failures_lost"
    # What withholds a verdict on numbers from elsewhere.
    ONE_LAUNCH_EACH = "one_launch_each"
    LAUNCHES_MISSING = "launches_missing"
    PAIRED_BY_ORDER = "paired_by_order"
    TIMES_UNKNOWN = "times_unknown"
    TOO_FEW_LAUNCHES = "too_few_launches"
    LOGS_COPIED = "logs_copied"
    LOGS_ALIKE = "logs_alike"
    WORK_DIFFERS = "work_differs"
    LOGS_REFUSED = "logs_refused"
    REPEATS_UNCLEAR = "repeats_unclear"
    # Of older versions, whose verdicts are read.
    NOT_ALTERNATING = "not_alternating"
    ORDER_UNKNOWN = "order_unknown"


class NoticeName(StrEnum):
    """What a notice is about; docs/verdict-schema.json explains each."""

    # Launches of a study.
    TWO_STATES = "two states"
    STATE_PROBE = "state probe"
    BLOCKS_RERUN = "blocks rerun"
    TIME_OUTS = "time-outs"
    DRIFT = "drift"
    ORDER_EFFECT = "order effect"
    ORDER_ONE_SIDED = "order one-sided"
    OUTLYING_LAUNCHES = "outlying launches"
    DISTURBED_LAUNCHES = "disturbed launches"
    SLOW_HOSTS = "slow hosts"
    SHARED_CORES = "shared cores"
    INTERFERENCE = "interference"
    CLOCK_SET = "clock set"
    CHANGED_FACTS = "changed facts"
    GIVEN_UP = "given up"
    ACCEPTED_WITHOUT_NEED = "accepted without need"
    BUDGET_USED = "budget used"
    ONE_INSTALLATION_EACH = "one installation each"
    SESSIONS = "sessions"
    BUILDS = "builds"
    ALLOCATIONS = "allocations"
    LAUNCHES_LOST = "launches lost"
    NOT_CHECKED = "not checked"
    SUCCESS_NOT_CHECKED = "success not checked"
    RATIO_MOVED = "the ratio moved"
    TRANSPORTS_DIFFER = "transports differ"
    LOGS_SHORTENED = "logs shortened"
    # Tables.
    ORDER_UNKNOWN = "order unknown"
    ORDER_FIXED = "order fixed"
    STOPPING_NOT_PLANNED = "stopping not planned"
    TOO_FEW_BLOCKS = "too few blocks"
    BLOCKS_LEFT_OUT = "blocks left out"
    LAUNCHES_LEFT_OUT = "launches left out"
    COLUMNS_IGNORED = "columns ignored"
    # Logs and published figures.
    NOT_READ = "not read"
    NOT_COMPARABLE = "not comparable"
    TRUNCATED_LOGS = "truncated logs"
    CASES_LEFT_OUT = "cases left out"
    DIRECTION_UNKNOWN = "direction unknown"
    VERSIONS_DIFFER = "versions differ"
    ITERATIONS_DIFFER = "iterations differ"
    WORK_DIFFERS = "work differs"
    LAUNCHES_FAILED = "launches failed"
    COPIES = "copies"
    REPEATS_UNCLEAR = "repeats unclear"
    ONE_ARM_AFTER_THE_OTHER = "one arm after the other"
    NOT_IN_TURNS = "not in turns"
    CONTAMINATION = "contamination"
    TOOLS_NOT_MIXED = "tools not mixed"
    NOT_PUBLISHED = "not published"


class Cause(StrEnum):
    """What, by the state probe, switches launches between two modes that hit all arms alike."""

    MACHINE = "machine"
    PROGRAM_OR_UNSEEN = "program_or_unseen"
    NO_PROBE = "no_probe"


class Unreadable(StrEnum):
    """Why a file, or a part of one, is not read as a log."""

    SAME_FILE = "same_file"
    SAME_RUN = "same_run"
    CANNOT_BE_READ = "cannot_be_read"
    NO_FILE = "no_file"
    LINK_TO_FOLDER = "link_to_folder"
    TOO_LARGE = "too_large"
    SHORTENED = "shortened"
    EMPTY = "empty"
    BINARY = "binary"
    NOT_PLAIN = "not_plain"
    NO_LOG = "no_log"
    UNKNOWN_TOOL = "unknown_tool"
    NO_READER = "no_reader"
    LAUNCH_FAILED = "launch_failed"
    WIRING = "wiring"
    WIRING_DAMAGED = "wiring_damaged"
    MIXED = "mixed"
    REFUSED = "refused"


class Untimed(StrEnum):
    """Why dates in logs, or the times of their files, do not say when the logs were made."""

    NOT_ALL_DATED = "not_all_dated"
    ONE_DATE = "one_date"
    ZONES_MIXED = "zones_mixed"
    DATES_JUMP = "dates_jump"
    SEVERAL_IN_A_FILE = "several_in_a_file"
    FILES_COPIED = "files_copied"


class DatedBy(StrEnum):
    """What says when logs were made."""

    DATES = "dates"
    DATES_WITHOUT_ZONE = "dates_without_zone"
    FILES = "files"
    COLUMN = "column"


class LeftOut(StrEnum):
    """Why something of one study is not compared with another study."""

    MISSING = "missing"
    FACTOR_DIFFERS = "factor_differs"
    REFERENCE_DIFFERS = "reference_differs"
    BENCHMARK_DIFFERS = "benchmark_differs"
    RANKS_DIFFER = "ranks_differ"
    PARAMETERS_DIFFER = "parameters_differ"
    METRICS_DIFFER = "metrics_differ"
    CASES_DIFFER = "cases_differ"


class Kind(StrEnum):
    """What an application may be bound by; lenses/profiles has the cases that stand for each."""

    LATENCY = "latency"
    MESSAGES = "messages"
    BANDWIDTH = "bandwidth"
    SMALL_COLLECTIVES = "small_collectives"
    LARGE_COLLECTIVES = "large_collectives"
    MEMORY = "memory"
    COMPUTE = "compute"
    STORAGE = "storage"
    START_UP = "start_up"
    GPU = "gpu"
