"""Rows of long studies: each is done once, a line that was cut off is done again, and parts are all of it."""

from argparse import ArgumentTypeError
from itertools import chain

import pytest

import meanfield
from validation.rows import line_of, measure, part_of, rows_of


def test_rows_are_done_once_and_a_line_that_was_cut_off_again(tmp_path):
    """Parts that other calls did are taken; the file of a call that was stopped goes on."""
    first, other = tmp_path / "rows.jsonl", tmp_path / "part.jsonl"
    first.write_text(line_of(("1", {"made": "up"})) + '["16", {"bi')
    other.write_text(line_of(("5", {"too": 1.0})))
    rows = measure(hexadecimal, ["5", "16", "1"], [first, other])
    assert rows == {"5": {"too": 1.0}, "1": {"made": "up"}, "16": {"hexadecimal": "0x10"}}
    assert rows_of(first) == rows
    with pytest.raises(meanfield.InputError, match="cannot be read as rows"):
        measure(hexadecimal, [], [first, tmp_path / "none.jsonl"])


def hexadecimal(task):
    """A row that only a task that was done has."""
    return {"hexadecimal": hex(int(task))}


def test_parts_are_all_of_it_and_no_more():
    tasks = list(range(10))
    assert sorted(chain.from_iterable(tasks[part_of(f"{i}/3")] for i in (1, 2, 3))) == tasks
    with pytest.raises(ArgumentTypeError, match="'4/3' is no part"):
        part_of("4/3")
