# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tables, and what other libraries make of them."""

import blklab
import pytest


def test_a_table_gives_back_what_it_was_made_of():
    columns = {"name": ["a", None], "n": [1, None], "x": [1, 2.5]}
    table = blklab.Table(columns)
    assert table.to_dict() == {"name": ["a", None], "n": [1, None], "x": [1.0, 2.5]}
    assert table.rows()[1] == {"name": None, "n": None, "x": 2.5}
    assert [row["n"] for row in table] == [1, None]
    with pytest.raises(blklab.InputError, match="no column is called 'm'"):
        table["m"]
    with pytest.raises(blklab.InputError):
        blklab.Table({"a": [1], "b": [1, 2]})
    with pytest.raises(blklab.InputError, match="column a: expected integers, floats or texts"):
        blklab.Table({"a": [1, "b"]})


def test_other_libraries_take_columns_as_they_lie(reader):
    run = blklab.run(reader)
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(run.events)
    assert table.num_rows == len(run.events)
    assert table.column("time_ns").to_pylist() == run.events["time_ns"]
    # A second time: nothing was given away.
    events = run.events
    assert pyarrow.table(events) == pyarrow.table(events)
    polars = pytest.importorskip("polars")
    assert polars.DataFrame(events).height == len(events)
    pandas = pytest.importorskip("pandas")
    assert isinstance(run.jobs.to_pandas(), pandas.DataFrame)
    duckdb = pytest.importorskip("duckdb")
    assert duckdb.sql("select count(*) from events").fetchall() == [(len(events),)]


def test_tables_have_a_form_in_notebooks(reader):
    run = blklab.run(reader)
    for shown in (run, run.jobs, run.why(), blklab.matrix(reader, sched=["none", "bfq"])):
        html = shown._repr_html_()
        assert html.count("<table") == html.count("</table>") == 1
    assert "&lt;" in blklab.Table({"a": ["<"]})._repr_html_()
