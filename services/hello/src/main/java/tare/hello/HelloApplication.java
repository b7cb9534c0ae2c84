// SPDX-License-Identifier: Apache-2.0
package tare.hello;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.autoconfigure.web.servlet.error.ErrorMvcAutoConfiguration;

/** Without Spring's error page, so that `/error` is a path like any other. */
@SpringBootApplication(exclude = ErrorMvcAutoConfiguration.class)
public class HelloApplication {
    public static void main(String[] arguments) {
        SpringApplication.run(HelloApplication.class, arguments);
    }
}
