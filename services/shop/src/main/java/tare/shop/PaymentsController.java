// SPDX-License-Identifier: Apache-2.0
package tare.shop;

import static tare.shop.Spans.span;

import org.springframework.context.annotation.Profile;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.client.RestClient;

/** The service that takes the users' money. Its database has no part in a request, as in the thesis. */
@RestController
@Profile("payments")
class PaymentsController {
    record Payment(long user, int amount) {}

    private final Settings settings;
    private final RestClient users;

    PaymentsController(Settings settings, RestClient.Builder client) {
        this.settings = settings;
        users = client.baseUrl(settings.usersUrl()).build();
    }

    @GetMapping("/payment/transfer/id/{id}/amount/{amount}")
    Payment transfer(@PathVariable("id") long user, @PathVariable int amount) {
        Amount.check(amount);
        span("SleepTask", () -> BusyWait.spin(settings.sleepUs() * 1_000L));
        span("Linpack2", () -> Linpack.run(settings.linpack2Size(), settings.linpack2Times()));
        users.put().uri("/users/{id}?amount={amount}", user, amount).retrieve().toBodilessEntity();
        return new Payment(user, amount);
    }
}
