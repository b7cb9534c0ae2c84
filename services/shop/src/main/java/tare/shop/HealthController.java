// SPDX-License-Identifier: Apache-2.0
package tare.shop;

import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** Whether the service can reach its database. */
@RestController
class HealthController {
    private final JdbcTemplate database;

    HealthController(JdbcTemplate database) {
        this.database = database;
    }

    @GetMapping("/health")
    String health() {
        database.queryForObject("SELECT 1", Integer.class);
        return "ready\n";
    }
}
