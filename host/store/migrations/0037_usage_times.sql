-- How long runs took, counted: a percentile of a product need not read its single runs. Portable to SQLite and PostgreSQL.
CREATE TABLE usage_times (
    product_id TEXT NOT NULL,
    day BIGINT NOT NULL,
    -- Runs that took at most so long, and longer than those of the row before: `host/store/src/times.rs` says where rows begin.
    at_most_us BIGINT NOT NULL,
    runs BIGINT NOT NULL,
    -- When the last of them began.
    last_at BIGINT NOT NULL,
    PRIMARY KEY (product_id, day, at_most_us)
) /* SQLite: WITHOUT ROWID */;

INSERT INTO usage_times (product_id, day, at_most_us, runs, last_at)
SELECT product_id, day, (duration_us + step - 1) / step * step, COUNT(*), MAX(started_at)
FROM (SELECT product_id, started_at, duration_us, started_at - started_at % 86400000000 AS day,
             CASE
                 WHEN duration_us < 64 THEN 1
                 WHEN duration_us < 128 THEN 2
                 WHEN duration_us < 256 THEN 4
                 WHEN duration_us < 512 THEN 8
                 WHEN duration_us < 1024 THEN 16
                 WHEN duration_us < 2048 THEN 32
                 WHEN duration_us < 4096 THEN 64
                 WHEN duration_us < 8192 THEN 128
                 WHEN duration_us < 16384 THEN 256
                 WHEN duration_us < 32768 THEN 512
                 WHEN duration_us < 65536 THEN 1024
                 WHEN duration_us < 131072 THEN 2048
                 WHEN duration_us < 262144 THEN 4096
                 WHEN duration_us < 524288 THEN 8192
                 WHEN duration_us < 1048576 THEN 16384
                 WHEN duration_us < 2097152 THEN 32768
                 WHEN duration_us < 4194304 THEN 65536
                 WHEN duration_us < 8388608 THEN 131072
                 WHEN duration_us < 16777216 THEN 262144
                 WHEN duration_us < 33554432 THEN 524288
                 WHEN duration_us < 67108864 THEN 1048576
                 WHEN duration_us < 134217728 THEN 2097152
                 WHEN duration_us < 268435456 THEN 4194304
                 WHEN duration_us < 536870912 THEN 8388608
                 WHEN duration_us < 1073741824 THEN 16777216
                 WHEN duration_us < 2147483648 THEN 33554432
                 WHEN duration_us < 4294967296 THEN 67108864
                 WHEN duration_us < 8589934592 THEN 134217728
                 WHEN duration_us < 17179869184 THEN 268435456
                 WHEN duration_us < 34359738368 THEN 536870912
                 WHEN duration_us < 68719476736 THEN 1073741824
                 ELSE 2147483648
             END AS step
      FROM executions) AS timed
GROUP BY product_id, day, (duration_us + step - 1) / step * step;
