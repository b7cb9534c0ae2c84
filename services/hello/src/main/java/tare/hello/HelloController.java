// SPDX-License-Identifier: Apache-2.0
package tare.hello;

import org.springframework.beans.factory.annotation.Value;
import org.springframework.http.MediaType;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.RequestHeader;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RestController;

/**
 * Any request answers Hello World, after the CPU was kept busy for as many microseconds as the
 * variable BUSY_WAIT_US says, or the request's own header `X-Busy-Wait-Us`.
 */
@RestController
public class HelloController {
    static final String VARIABLE = "BUSY_WAIT_US";
    static final String HEADER = "X-Busy-Wait-Us";
    static final int MOST_MICROSECONDS = 1_000_000;
    private static final String EXPECTED =
            ": expected whole microseconds from 0 to " + MOST_MICROSECONDS;

    private final int usual;

    HelloController(@Value("${" + VARIABLE + ":0}") String usual) {
        this.usual = microseconds(usual);
        if (this.usual < 0) {
            throw new IllegalArgumentException(VARIABLE + EXPECTED);
        }
    }

    @RequestMapping("/**")
    ResponseEntity<String> hello(@RequestHeader(name = HEADER, required = false) String busyWait) {
        int microseconds = busyWait == null ? usual : microseconds(busyWait);
        if (microseconds < 0) {
            return text(400, HEADER + EXPECTED + "\n");
        }
        if (microseconds > 0) {
            BusyWait.spin(microseconds * 1_000L);
        }
        return text(200, "Hello World");
    }

    /** The text's value, or -1 if it is not one of those that may be asked for. */
    private static int microseconds(String text) {
        try {
            int value = Integer.parseInt(text.strip());
            return value <= MOST_MICROSECONDS ? value : -1;
        } catch (NumberFormatException notANumber) {
            return -1;
        }
    }

    private static ResponseEntity<String> text(int status, String body) {
        return ResponseEntity.status(status).contentType(MediaType.TEXT_PLAIN).body(body);
    }
}
