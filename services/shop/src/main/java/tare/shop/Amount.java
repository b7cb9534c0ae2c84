// SPDX-License-Identifier: Apache-2.0
package tare.shop;

import org.springframework.http.HttpStatus;
import org.springframework.web.server.ResponseStatusException;

/** What a user can spend at once, in whole units of money. */
final class Amount {
    static final int MOST = 1_000_000;

    private Amount() {}

    static void check(int amount) {
        if (amount < 1 || amount > MOST) {
            throw new ResponseStatusException(
                    HttpStatus.BAD_REQUEST, "amount: expected 1 to " + MOST + " (found " + amount + ")");
        }
    }
}
