"""Tables from and for people: xlsx and csv, read without trust and written so that they read back exactly."""

from app.tables.cells import ErrorValue, Formula, Value, neutralise, restore
from app.tables.faults import Fault, FaultLog, summarise
from app.tables.files import write_atomically
from app.tables.reading import read_table
from app.tables.records import Column, Counts, Record, read_records
from app.tables.shape import Limits, Row, Table
from app.tables.writing import FORMATS, csv_lines, write_table

__all__ = [
    "FORMATS",
    "Column",
    "Counts",
    "ErrorValue",
    "Fault",
    "FaultLog",
    "Formula",
    "Limits",
    "Record",
    "Row",
    "Table",
    "Value",
    "csv_lines",
    "neutralise",
    "read_records",
    "read_table",
    "restore",
    "summarise",
    "write_atomically",
    "write_table",
]
