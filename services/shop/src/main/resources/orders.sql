-- SPDX-License-Identifier: Apache-2.0
CREATE TABLE IF NOT EXISTS orders (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    user_id bigint NOT NULL,
    amount bigint NOT NULL
);
