// SPDX-License-Identifier: Apache-2.0
package tare.shop;

import static tare.shop.Spans.span;

import java.io.IOException;
import org.springframework.context.annotation.Profile;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.client.RestClient;

/** The service that users of the shop talk to. */
@RestController
@Profile("orders")
class OrdersController {
    record Order(long id, long user, int amount) {}

    private final Settings settings;
    private final JdbcTemplate database;
    private final RestClient users;
    private final RestClient payments;

    OrdersController(Settings settings, JdbcTemplate database, RestClient.Builder client) {
        this.settings = settings;
        this.database = database;
        users = client.clone().baseUrl(settings.usersUrl()).build();
        payments = client.clone().baseUrl(settings.paymentsUrl()).build();
    }

    /** The request flow of Vinken's thesis (Figure 4.4). */
    @GetMapping("/Orders/create/id/{id}")
    Order create(@PathVariable("id") long user) throws IOException {
        useLargeFile();
        span("SmallFile", this::useSmallFile);
        users.get().uri("/users/{id}", user).retrieve().toBodilessEntity();
        payments.get().uri("/payment/transfer/id/{id}/amount/{amount}", user, settings.amount())
                .retrieve().toBodilessEntity();
        String insert = "INSERT INTO orders (user_id, amount) VALUES (?, ?) RETURNING id";
        long id = database.queryForObject(insert, Long.class, user, settings.amount());
        return new Order(id, user, settings.amount());
    }

    private void useLargeFile() throws IOException {
        try (ScratchFile file = new ScratchFile(settings.folder())) {
            span("LargeWrite", () -> file.write(settings.largeFileBytes()));
            span("LargeRead", () -> file.read(settings.largeFileBytes()));
        }
    }

    private void useSmallFile() throws IOException {
        try (ScratchFile file = new ScratchFile(settings.folder())) {
            for (int time = 0; time < settings.smallFileTimes(); time++) {
                file.write(settings.smallFileBytes());
                file.read(settings.smallFileBytes());
            }
        }
    }
}
