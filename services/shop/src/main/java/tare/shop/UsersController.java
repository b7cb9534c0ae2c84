// SPDX-License-Identifier: Apache-2.0
package tare.shop;

import static tare.shop.Spans.span;

import java.util.List;
import org.springframework.context.annotation.Profile;
import org.springframework.http.HttpStatus;
import org.springframework.jdbc.core.DataClassRowMapper;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PutMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.server.ResponseStatusException;

/** The service that knows the users. */
@RestController
@Profile("users")
class UsersController {
    record User(long id, String name, long spent) {}

    private final Settings settings;
    private final JdbcTemplate database;

    UsersController(Settings settings, JdbcTemplate database) {
        this.settings = settings;
        this.database = database;
    }

    @GetMapping("/users/{id}")
    User get(@PathVariable long id) {
        User user = find(id);
        span("Linpack1", () -> Linpack.run(settings.linpack1Size(), settings.linpack1Times()));
        return user;
    }

    @PutMapping("/users/{id}")
    User spend(@PathVariable long id, @RequestParam int amount) {
        Amount.check(amount);
        User user = find(id);
        // Not the sum of what was read: two payments of a user may overlap.
        database.update("UPDATE users SET spent = spent + ? WHERE id = ?", amount, id);
        return new User(id, user.name(), user.spent() + amount);
    }

    private User find(long id) {
        String select = "SELECT id, name, spent FROM users WHERE id = ?";
        List<User> found = database.query(select, new DataClassRowMapper<>(User.class), id);
        if (found.isEmpty()) {
            throw new ResponseStatusException(HttpStatus.NOT_FOUND, "no user has the ID " + id);
        }
        return found.get(0);
    }
}
