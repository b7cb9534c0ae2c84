// SPDX-License-Identifier: Apache-2.0
import static io.gatling.javaapi.core.CoreDsl.*;
import static io.gatling.javaapi.http.HttpDsl.*;

import io.gatling.javaapi.core.Simulation;

/** Two users, thirty requests each, to the address in the property `url`. */
public class Requests extends Simulation {
    {
        setUp(
                scenario("requests")
                        .repeat(10)
                        .on(
                                exec(http("outer").get("/"))
                                        .group("group")
                                        .on(exec(http("one").get("/")).exec(http("two").get("/"))))
                        .injectOpen(atOnceUsers(2)))
                .protocols(http.baseUrl(System.getProperty("url")))
                .assertions(global().successfulRequests().count().gt(0L));
    }
}
