// SPDX-License-Identifier: Apache-2.0
package tare.shop;

import static org.assertj.core.api.Assertions.assertThat;
import static org.hamcrest.Matchers.startsWith;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.eq;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.verifyNoInteractions;
import static org.mockito.Mockito.when;
import static org.springframework.test.web.client.match.MockRestRequestMatchers.requestTo;
import static org.springframework.test.web.client.response.MockRestResponseCreators.withException;
import static org.springframework.test.web.client.response.MockRestResponseCreators.withServerError;
import static org.springframework.test.web.client.response.MockRestResponseCreators.withStatus;
import static org.springframework.test.web.client.response.MockRestResponseCreators.withSuccess;
import static org.springframework.test.web.servlet.request.MockMvcRequestBuilders.get;
import static org.springframework.test.web.servlet.result.MockMvcResultMatchers.content;
import static org.springframework.test.web.servlet.result.MockMvcResultMatchers.status;

import java.net.ConnectException;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.mockito.stubbing.OngoingStubbing;
import org.springframework.dao.DataAccessResourceFailureException;
import org.springframework.http.HttpStatus;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.test.web.client.MockRestServiceServer;
import org.springframework.test.web.client.ResponseCreator;
import org.springframework.test.web.servlet.MockMvc;
import org.springframework.test.web.servlet.setup.MockMvcBuilders;
import org.springframework.web.client.RestClient;

class OrdersControllerTest {
    @TempDir private Path folder;
    private final JdbcTemplate database = mock(JdbcTemplate.class);
    private final RestClient.Builder client = RestClient.builder();
    private final MockRestServiceServer others = MockRestServiceServer.bindTo(client).build();

    @Test
    void anOrderAsksTheOtherServicesAndIsStored() throws Exception {
        usersAnswer(withSuccess());
        others.expect(requestTo("http://payments/payment/transfer/id/7/amount/10")).andRespond(withSuccess());
        storing().thenReturn(12L);
        shop(folder).perform(get("/Orders/create/id/7"))
                .andExpect(status().isOk())
                .andExpect(content().json("{'id': 12, 'user': 7, 'amount': 10}"));
        others.verify();
        assertThat(folder).isEmptyDirectory();
    }

    @Test
    void aUserThatIsUnknownPaysNothing() throws Exception {
        usersAnswer(withStatus(HttpStatus.NOT_FOUND).body("no user has the ID 7\n"));
        fails(folder, HttpStatus.NOT_FOUND, "no user has the ID 7\n");
        verifyNoInteractions(database);
    }

    @Test
    void aFailureOfAnotherServiceIsABadGateway() throws Exception {
        usersAnswer(withServerError());
        fails(folder, HttpStatus.BAD_GATEWAY, "another service: ");
    }

    @Test
    void aServiceThatDoesNotListenIsABadGateway() throws Exception {
        usersAnswer(withException(new ConnectException("refused")));
        fails(folder, HttpStatus.BAD_GATEWAY, "another service: java.net.ConnectException: refused\n");
        verifyNoInteractions(database);
    }

    @Test
    void aFailureOfTheDatabaseIsOneLine() throws Exception {
        usersAnswer(withSuccess());
        others.expect(requestTo(startsWith("http://payments/"))).andRespond(withSuccess());
        storing().thenThrow(new DataAccessResourceFailureException("closed\nat"));
        String line = "database: org.springframework.dao.DataAccessResourceFailureException: closed\n";
        fails(folder, HttpStatus.INTERNAL_SERVER_ERROR, line);
    }

    @Test
    void aFolderThatIsAbsentIsOneLine() throws Exception {
        fails(folder.resolve("absent"), HttpStatus.INTERNAL_SERVER_ERROR, "file: java.nio.file.NoSuchFileException: ");
    }

    @Test
    void anIdIsAWholeNumber() throws Exception {
        shop(folder).perform(get("/Orders/create/id/x"))
                .andExpect(status().isBadRequest())
                .andExpect(content().string("id: expected a whole number (found x)\n"));
    }

    private void usersAnswer(ResponseCreator answer) {
        others.expect(requestTo("http://users/users/7")).andRespond(answer);
    }

    private OngoingStubbing<Long> storing() {
        return when(database.queryForObject(any(String.class), eq(Long.class), eq(7L), eq(10)));
    }

    private void fails(Path folder, HttpStatus status, String message) throws Exception {
        shop(folder).perform(get("/Orders/create/id/7"))
                .andExpect(status().is(status.value()))
                .andExpect(content().string(startsWith(message)));
        others.verify();
    }

    private MockMvc shop(Path folder) {
        Settings settings = Examples.settings(folder);
        return MockMvcBuilders.standaloneSetup(new OrdersController(settings, database, client))
                .setControllerAdvice(new Errors())
                .build();
    }
}
