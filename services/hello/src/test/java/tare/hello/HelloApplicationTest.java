// SPDX-License-Identifier: Apache-2.0
package tare.hello;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.web.server.LocalServerPort;

@SpringBootTest(webEnvironment = WebEnvironment.RANDOM_PORT, properties = "server.address=127.0.0.1")
class HelloApplicationTest {
    private final HttpClient client = HttpClient.newHttpClient();
    @LocalServerPort private int port;

    @ParameterizedTest
    @CsvSource({"GET,/", "GET,/any/path?with=query", "POST,/error", "PUT,/a.html", "DELETE,/favicon.ico"})
    void anyPathAnswersHelloWorld(String method, String path) throws Exception {
        HttpResponse<String> answer = send(method, path, null);
        assertThat(answer.statusCode()).isEqualTo(200);
        assertThat(answer.body()).isEqualTo("Hello World");
    }

    @ParameterizedTest
    @ValueSource(strings = {"0", "20000", " 20000 "})
    void waitsAtLeastAsLongAsTheHeaderAsks(String header) throws Exception {
        long start = System.nanoTime();
        HttpResponse<String> answer = send("GET", "/", header);
        assertThat(System.nanoTime() - start).isGreaterThanOrEqualTo(Long.parseLong(header.strip()) * 1_000);
        assertThat(answer.body()).isEqualTo("Hello World");
    }

    @ParameterizedTest
    @ValueSource(strings = {"-1", "1000001", "99999999999", "1e3", "soon", ""})
    void refusesAnyOtherValueInOneLine(String header) throws Exception {
        HttpResponse<String> answer = send("GET", "/", header);
        assertThat(answer.statusCode()).isEqualTo(400);
        assertThat(answer.body()).isEqualTo("X-Busy-Wait-Us: expected whole microseconds from 0 to 1000000\n");
    }

    private HttpResponse<String> send(String method, String path, String busyWait)
            throws IOException, InterruptedException {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path))
                .method(method, HttpRequest.BodyPublishers.noBody());
        if (busyWait != null) {
            request.header("X-Busy-Wait-Us", busyWait);
        }
        return client.send(request.build(), BodyHandlers.ofString());
    }
}
