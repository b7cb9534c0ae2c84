// SPDX-License-Identifier: Apache-2.0
package tare.shop;

import java.io.IOException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.core.NestedExceptionUtils;
import org.springframework.dao.DataAccessException;
import org.springframework.http.HttpStatus;
import org.springframework.http.HttpStatusCode;
import org.springframework.http.MediaType;
import org.springframework.http.ResponseEntity;
import org.springframework.web.ErrorResponse;
import org.springframework.web.bind.ServletRequestBindingException;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.RestControllerAdvice;
import org.springframework.web.client.HttpClientErrorException;
import org.springframework.web.client.RestClientException;
import org.springframework.web.method.annotation.MethodArgumentTypeMismatchException;
import org.springframework.web.server.ResponseStatusException;
import org.springframework.web.servlet.resource.NoResourceFoundException;

/** Answers each error with one line; errors that are not the client's are logged, too. */
@RestControllerAdvice
class Errors {
    private static final Logger LOG = LoggerFactory.getLogger(Errors.class);

    @ExceptionHandler({
        ResponseStatusException.class, ServletRequestBindingException.class, NoResourceFoundException.class
    })
    ResponseEntity<String> refuse(ErrorResponse refusal) {
        return line(refusal.getStatusCode(), refusal.getBody().getDetail());
    }

    @ExceptionHandler
    ResponseEntity<String> refuse(MethodArgumentTypeMismatchException wrong) {
        String message = wrong.getName() + ": expected a whole number (found " + wrong.getValue() + ")";
        return line(HttpStatus.BAD_REQUEST, message);
    }

    /** The other service refused the request: so does this one. */
    @ExceptionHandler
    ResponseEntity<String> refuse(HttpClientErrorException refused) {
        return line(refused.getStatusCode(), refused.getResponseBodyAsString().strip());
    }

    @ExceptionHandler
    ResponseEntity<String> fail(RestClientException failure) {
        return logged(HttpStatus.BAD_GATEWAY, "another service", failure);
    }

    @ExceptionHandler
    ResponseEntity<String> fail(DataAccessException failure) {
        return logged(HttpStatus.INTERNAL_SERVER_ERROR, "database", failure);
    }

    @ExceptionHandler
    ResponseEntity<String> fail(IOException failure) {
        return logged(HttpStatus.INTERNAL_SERVER_ERROR, "file", failure);
    }

    private static ResponseEntity<String> logged(HttpStatus status, String where, Exception failure) {
        String cause = NestedExceptionUtils.getMostSpecificCause(failure).toString();
        String message = where + ": " + cause.lines().findFirst().orElse("");
        LOG.error(message);
        return line(status, message);
    }

    private static ResponseEntity<String> line(HttpStatusCode status, String message) {
        return ResponseEntity.status(status).contentType(MediaType.TEXT_PLAIN).body(message + "\n");
    }
}
