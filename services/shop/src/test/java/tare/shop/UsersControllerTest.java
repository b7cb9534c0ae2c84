// SPDX-License-Identifier: Apache-2.0
package tare.shop;

import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.eq;
import static org.mockito.ArgumentMatchers.startsWith;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.never;
import static org.mockito.Mockito.verify;
import static org.mockito.Mockito.when;
import static org.springframework.test.web.servlet.request.MockMvcRequestBuilders.get;
import static org.springframework.test.web.servlet.request.MockMvcRequestBuilders.put;
import static org.springframework.test.web.servlet.result.MockMvcResultMatchers.content;
import static org.springframework.test.web.servlet.result.MockMvcResultMatchers.status;

import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.core.RowMapper;
import org.springframework.test.web.servlet.MockMvc;
import org.springframework.test.web.servlet.setup.MockMvcBuilders;

class UsersControllerTest {
    private static final String UPDATE = "UPDATE users ";
    private final JdbcTemplate database = mock(JdbcTemplate.class);
    private final MockMvc users = MockMvcBuilders.standaloneSetup(
                    new UsersController(Examples.settings(Path.of("unused")), database))
            .setControllerAdvice(new Errors())
            .build();

    @BeforeEach
    void oneUser() {
        when(database.query(any(String.class), any(RowMapper.class), eq(7L)))
                .thenReturn(List.of(new UsersController.User(7, "user 7", 30)));
    }

    @Test
    void aUserIsSelected() throws Exception {
        users.perform(get("/users/7"))
                .andExpect(status().isOk())
                .andExpect(content().json("{'id': 7, 'name': 'user 7', 'spent': 30}"));
    }

    @Test
    void whatAUserPaysIsAdded() throws Exception {
        users.perform(put("/users/7?amount=10"))
                .andExpect(status().isOk())
                .andExpect(content().json("{'id': 7, 'name': 'user 7', 'spent': 40}"));
        verify(database).update(startsWith(UPDATE), eq(10), eq(7L));
    }

    @Test
    void aUserThatIsUnknownIsNotFound() throws Exception {
        for (var request : List.of(get("/users/8"), put("/users/8?amount=10"))) {
            users.perform(request)
                    .andExpect(status().isNotFound())
                    .andExpect(content().string("no user has the ID 8\n"));
        }
        verify(database, never()).update(startsWith(UPDATE), any(), any());
    }

    @ParameterizedTest
    @CsvSource({
        "?amount=0,amount: expected 1 to 1000000 (found 0)",
        "?amount=x,amount: expected a whole number (found x)",
        "'',Required parameter 'amount' is not present."
    })
    void anyOtherAmountIsABadRequest(String query, String message) throws Exception {
        users.perform(put("/users/7" + query))
                .andExpect(status().isBadRequest())
                .andExpect(content().string(message + "\n"));
    }
}
