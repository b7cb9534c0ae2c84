// SPDX-License-Identifier: Apache-2.0
package tare.hello;

import org.springframework.http.MediaType;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.RequestHeader;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RestController;

/** Any request answers Hello World; `X-Busy-Wait-Us: N` keeps the CPU busy for N µs before. */
@RestController
public class HelloController {
    static final String HEADER = "X-Busy-Wait-Us";
    static final int MOST_MICROSECONDS = 1_000_000;
    private static final String REFUSAL =
            HEADER + ": expected whole microseconds from 0 to " + MOST_MICROSECONDS + "\n";

    @RequestMapping("/**")
    ResponseEntity<String> hello(@RequestHeader(name = HEADER, required = false) String busyWait) {
        if (busyWait != null) {
            int microseconds = microseconds(busyWait);
            if (microseconds < 0) {
                return text(400, REFUSAL);
            }
            BusyWait.spin(microseconds * 1_000L);
        }
        return text(200, "Hello World");
    }

    /** The header's value, or -1 if it is not one of those that may be asked for. */
    private static int microseconds(String header) {
        try {
            int value = Integer.parseInt(header.strip());
            return value <= MOST_MICROSECONDS ? value : -1;
        } catch (NumberFormatException notANumber) {
            return -1;
        }
    }

    private static ResponseEntity<String> text(int status, String body) {
        return ResponseEntity.status(status).contentType(MediaType.TEXT_PLAIN).body(body);
    }
}
