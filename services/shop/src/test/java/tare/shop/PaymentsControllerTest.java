// SPDX-License-Identifier: Apache-2.0
package tare.shop;

import static org.assertj.core.api.Assertions.assertThat;
import static org.springframework.test.web.client.match.MockRestRequestMatchers.method;
import static org.springframework.test.web.client.match.MockRestRequestMatchers.requestTo;
import static org.springframework.test.web.client.response.MockRestResponseCreators.withStatus;
import static org.springframework.test.web.client.response.MockRestResponseCreators.withSuccess;
import static org.springframework.test.web.servlet.request.MockMvcRequestBuilders.get;
import static org.springframework.test.web.servlet.result.MockMvcResultMatchers.content;
import static org.springframework.test.web.servlet.result.MockMvcResultMatchers.status;

import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.http.HttpMethod;
import org.springframework.http.HttpStatus;
import org.springframework.test.web.client.MockRestServiceServer;
import org.springframework.test.web.client.ResponseCreator;
import org.springframework.test.web.servlet.MockMvc;
import org.springframework.test.web.servlet.ResultActions;
import org.springframework.test.web.servlet.setup.MockMvcBuilders;
import org.springframework.web.client.RestClient;

class PaymentsControllerTest {
    private final RestClient.Builder client = RestClient.builder();
    private final MockRestServiceServer users = MockRestServiceServer.bindTo(client).build();
    private final MockMvc payments = MockMvcBuilders.standaloneSetup(
                    new PaymentsController(Examples.settings(Path.of("unused")), client))
            .setControllerAdvice(new Errors())
            .build();

    @Test
    void aPaymentIsChargedAfterTheBusyWait() throws Exception {
        usersAnswer(withSuccess());
        long start = System.nanoTime();
        transfer("7", "10").andExpect(status().isOk()).andExpect(content().json("{'user': 7, 'amount': 10}"));
        assertThat(System.nanoTime() - start).isGreaterThanOrEqualTo(Examples.SLEEP_US * 1_000L);
        users.verify();
    }

    @Test
    void aUserThatIsUnknownIsNotFound() throws Exception {
        usersAnswer(withStatus(HttpStatus.NOT_FOUND).body("no user has the ID 7\n"));
        transfer("7", "10").andExpect(status().isNotFound()).andExpect(content().string("no user has the ID 7\n"));
        users.verify();
    }

    @ParameterizedTest
    @CsvSource({
        "7,0,amount: expected 1 to 1000000 (found 0)", "7,-1,amount: expected 1 to 1000000 (found -1)",
        "7,1000001,amount: expected 1 to 1000000 (found 1000001)",
        "7,x,amount: expected a whole number (found x)", "y,10,id: expected a whole number (found y)"
    })
    void anyOtherAmountIsABadRequest(String user, String amount, String message) throws Exception {
        transfer(user, amount).andExpect(status().isBadRequest()).andExpect(content().string(message + "\n"));
    }

    private void usersAnswer(ResponseCreator answer) {
        users.expect(requestTo("http://users/users/7?amount=10")).andExpect(method(HttpMethod.PUT)).andRespond(answer);
    }

    private ResultActions transfer(String user, String amount) throws Exception {
        return payments.perform(get("/payment/transfer/id/{user}/amount/{amount}", user, amount));
    }
}
