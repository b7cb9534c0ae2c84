-- SPDX-License-Identifier: Apache-2.0
CREATE TABLE IF NOT EXISTS users (
    id bigint PRIMARY KEY,
    name text NOT NULL,
    spent bigint NOT NULL DEFAULT 0
);
INSERT INTO users (id, name)
SELECT number, 'user ' || number FROM generate_series(1, 5000) AS number
ON CONFLICT DO NOTHING;
