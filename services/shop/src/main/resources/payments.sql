-- SPDX-License-Identifier: Apache-2.0
-- Requests do not use this database, as in the thesis. A service that cannot reach it does not start.
SELECT 1;
