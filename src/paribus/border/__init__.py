"""Reading what comes from outside within bounds, and writing what goes outside safely."""

from paribus.border.drafts import cache_directory, draft_of
from paribus.border.fields import Place, items, one_of, table, text, texts, whole
from paribus.border.inputs import (
    MOST_DEPTH,
    MOST_TEXT,
    as_error,
    check_regular,
    data_in,
    data_of,
    decoded,
    exists,
    is_directory,
    is_file,
    not_plain,
    open_anew,
    open_own,
    open_regular,
    read_bounded,
    read_json,
    read_toml,
)
from paribus.border.kept import (
    KEPT,
    KEPT_BYTES,
    LEFT_OUT,
    UNREAD_BYTES,
    left_out,
    left_out_of,
    shorten,
)
from paribus.border.outside import Screen, csv_cell, printable, screened, under
from paribus.border.trust import find_program, home, make_directory, search_path, user_name, why_not
from paribus.border.values import of_json
