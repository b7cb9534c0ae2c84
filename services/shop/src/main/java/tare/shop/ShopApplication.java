// SPDX-License-Identifier: Apache-2.0
package tare.shop;

import java.net.http.HttpClient;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.autoconfigure.http.client.ClientHttpRequestFactoryBuilderCustomizer;
import org.springframework.boot.autoconfigure.web.servlet.error.ErrorMvcAutoConfiguration;
import org.springframework.boot.context.properties.ConfigurationPropertiesScan;
import org.springframework.boot.http.client.JdkClientHttpRequestFactoryBuilder;
import org.springframework.context.annotation.Bean;

/** One of the three services, chosen by the profile. */
@SpringBootApplication(exclude = ErrorMvcAutoConfiguration.class)
@ConfigurationPropertiesScan
public class ShopApplication {
    public static void main(String[] arguments) {
        // Shorter than Tomcat's: no request is sent on a connection that the other side closes.
        System.setProperty("jdk.httpclient.keepalive.timeout", "30");
        // The pool would send an empty statement before each use of a connection that was idle for 500 ms:
        // a span that is in some requests and not in others.
        System.setProperty("com.zaxxer.hikari.aliveBypassWindowMs", String.valueOf(Long.MAX_VALUE));
        SpringApplication.run(ShopApplication.class, arguments);
    }

    /** The client would offer HTTP/2 in every request, which Tomcat does not accept. */
    @Bean
    ClientHttpRequestFactoryBuilderCustomizer<JdkClientHttpRequestFactoryBuilder> http1() {
        return builder -> builder.withHttpClientCustomizer(client -> client.version(HttpClient.Version.HTTP_1_1));
    }
}
