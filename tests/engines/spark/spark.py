#!/usr/bin/env python3
"""Spark, which Databricks is made of, for the Databricks of the tests: a line of JSON is asked, a line of JSON answers.

    spark.py DIRECTORY    # where its tables and its scratch files are

    {"admin": ["CREATE TABLE …", …]}                                              runs statements
    {"run": "SELECT :a", "catalog": "spark_catalog", "schema": "shop",
     "parameters": [{"name": "a", "type": "INT", "value": "1"}]}                  what the SQL Statement Execution API answers: values as its texts
    {"told": "SELECT …", "schema": "shop"}                                        what a program of Spark's own reads, spelled as souk spells it

An answer has `columns` (names and types) and `rows`, or `failure`: condition, SQLSTATE, text. What the API's texts look like was seen in answers
that were recorded for Databricks' JDBC driver; what is in them is Spark's.
"""

import base64
import json
import logging
import math
import os
import re
import struct
import sys
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.classic.column import Column

# The answers' way out: whatever else writes to the standard output writes to that of errors.
OUT = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)


def start(directory: Path) -> SparkSession:
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.log.level", "OFF")
        .config("spark.local.dir", str(directory / "scratch"))
        .config("spark.sql.warehouse.dir", str(directory / "tables"))
        # A warehouse of Databricks' is in UTC, too, where nobody says otherwise.
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        # Databricks has it, too, in its newest runtimes.
        .config("spark.sql.timeType.enabled", "true")
        .getOrCreate()
    )


class Server:
    def __init__(self, spark: SparkSession):
        self.spark = spark
        self.sessions = {}
        self.literals = {}

    def session(self, asked: dict) -> SparkSession:
        """A session whose names are of what is asked."""
        place = (asked.get("catalog") or "spark_catalog", asked.get("schema") or "default")
        if place not in self.sessions:
            session = self.spark.newSession()
            session.sql("USE " + ".".join(f"`{part}`" for part in place))
            self.sessions[place] = session
        return self.sessions[place]

    def admin(self, statements: list) -> dict:
        for statement in statements:
            self.spark.sql(statement)
        # A session may have lost the schema that it is in.
        self.sessions.clear()
        return {"columns": [], "rows": []}

    def run(self, asked: dict) -> dict:
        values = {one["name"]: self.literal(one) for one in asked.get("parameters") or []}
        frame = self.session(asked).sql(asked["run"], args=values or None)
        kinds = [field.dataType for field in frame.schema.fields]
        return {"columns": columns(frame), "rows": [list(row) for row in each(frame, kinds, text).collect()]}

    def literal(self, parameter: dict):
        """A value, which the API takes as a text and as what it is to be."""
        kind, text = parameter.get("type") or "STRING", parameter.get("value")
        if (kind, text) not in self.literals:
            frame = self.spark.sql(f"SELECT CAST(:v AS {kind}) AS v", args={"v": F.lit(text)})
            # What Spark makes of a cast of a constant is a constant.
            folded = frame._jdf.queryExecution().optimizedPlan().expressions().head().child()
            as_column = self.spark._jvm.org.apache.spark.sql.classic.ExpressionUtils.column
            self.literals[kind, text] = Column(as_column(folded))
        return self.literals[kind, text]

    def told(self, asked: dict) -> dict:
        frame = self.session(asked).sql(asked["told"])
        kinds = [field.dataType for field in frame.schema.fields]
        read = each(frame, kinds, written)
        rows = [[spelled(value, kind) for value, kind in zip(row, kinds)] for row in read.collect()]
        return {"columns": columns(frame), "rows": rows}


def columns(frame) -> list:
    return [[field.name, field.dataType.simpleString()] for field in frame.schema.fields]


def each(frame, kinds, way):
    """The same rows, of whose values this has been made."""
    names = [f"c{place}" for place in range(len(kinds))]
    values = (way(F.col(name), kind).alias(name) for name, kind in zip(names, kinds))
    return frame.toDF(*names).select(*values)


def written(column, kind):
    """What Python has no type of, or not all values, as Spark writes it."""
    match kind:
        case T.TimestampType():
            return F.date_format(column, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'")
        case T.TimestampNTZType():
            return F.date_format(column, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS")
        case T.DateType() | T.TimeType():
            return column.cast("string")
        case T.DayTimeIntervalType() | T.YearMonthIntervalType():
            return F.regexp_extract(column.cast("string"), "'(.*)'", 1)
        case T.MapType():
            # Python gets them in no order.
            return F.map_entries(column)
        case _:
            return column


def text(column, kind):
    """A value as the API sends it."""
    match kind:
        case T.TimestampType():
            return F.date_format(column, "yyyy-MM-dd'T'HH:mm:ss.SSSXXX")
        case T.TimestampNTZType():
            return F.date_format(column, "yyyy-MM-dd'T'HH:mm:ss.SSS")
        case T.BinaryType():
            return F.regexp_replace(F.base64(column), "[\r\n]", "")
        case T.ArrayType() | T.MapType() | T.StructType() | T.VariantType():
            return F.to_json(column)
        case T.DayTimeIntervalType() | T.YearMonthIntervalType():
            return F.regexp_extract(column.cast("string"), "'(.*)'", 1)
        case _:
            return column.cast("string")


def spelled(value, kind, nested: bool = False):
    """A value as souk writes it: in a document where it is nested."""
    if value is None:
        return "null" if nested else None
    if isinstance(kind, T.TimeType):
        whole, _, fraction = value.partition(".")
        return f"{whole}.{fraction:0<6}"
    if isinstance(value, str) and not nested:
        return value
    quoted = (lambda text: json.dumps(text, ensure_ascii=False)) if nested else str
    match kind:
        case T.BooleanType():
            return "true" if value else "false"
        case T.ByteType() | T.ShortType() | T.IntegerType() | T.LongType():
            return str(value)
        case T.DecimalType():
            return f"{value:.{kind.scale}f}"
        case T.FloatType() | T.DoubleType():
            if math.isnan(value) or math.isinf(value):
                word = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
                return quoted(word)
            return shortest(value) if isinstance(kind, T.FloatType) else repr(value)
        case T.BinaryType():
            return quoted(base64.b64encode(value).decode())
        case T.DateType():
            return quoted(value.isoformat())
        case T.TimestampType():
            return quoted(value.isoformat("T", "microseconds") + "Z")
        case T.TimestampNTZType():
            return quoted(value.isoformat("T", "microseconds"))
        case T.ArrayType():
            return "[" + ",".join(spelled(one, kind.elementType, True) for one in value) + "]"
        case T.MapType():
            entries = value.items() if isinstance(value, dict) else value
            return members((spelled(one, kind.keyType), spelled(part, kind.valueType, True)) for one, part in entries)
        case T.StructType():
            parts = zip(kind.fields, value)
            return members((field.name, spelled(part, field.dataType, True)) for field, part in parts)
        case T.VariantType():
            return value.toJson()
        case _:
            return quoted(value)


def members(parts) -> str:
    return "{" + ",".join(f"{json.dumps(name, ensure_ascii=False)}:{value}" for name, value in parts) + "}"


def shortest(value: float) -> str:
    """The least digits that are this value in 32 bits."""
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        if struct.pack("f", float(text)) == struct.pack("f", value):
            return text
    return repr(value)


def failure(error: Exception) -> list:
    said = error.getMessage() if isinstance(error, PySparkException) else str(error)
    told = re.search(r"\[([A-Z_]+(?:\.[A-Z_]+)?)\] (.*?) SQLSTATE: (\w{5})", said or str(error), flags=re.DOTALL)
    if told is None:
        return ["", "", f"{type(error).__name__}: {error}"]
    condition, said, state = told.groups()
    return [condition, state, said]


def main() -> None:
    directory = Path(sys.argv[1])
    # Each failure with its stack, which whoever asks is told without.
    logging.getLogger("SQLQueryContextLogger").disabled = True
    server = Server(start(directory))
    print("ready", file=OUT, flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            if "admin" in asked:
                answer = server.admin(asked["admin"])
            elif "run" in asked:
                answer = server.run(asked)
            else:
                answer = server.told(asked)
        except Exception as error:  # Whatever it is, whoever asks has to hear of it.
            answer = {"failure": failure(error)}
        print(json.dumps(answer), file=OUT, flush=True)


if __name__ == "__main__":
    main()
