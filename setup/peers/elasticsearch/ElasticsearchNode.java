// SPDX-License-Identifier: Apache-2.0

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.elasticsearch.common.settings.Settings;
import org.elasticsearch.env.Environment;
import org.elasticsearch.node.InternalSettingsPreparer;
import org.elasticsearch.node.Node;
import org.elasticsearch.transport.Netty4Plugin;

/**
 * A node of Elasticsearch with HTTP, made of its jars: Maven Central has no distribution of version
 * 7. As the distribution does, it reads ES_PATH_CONF/elasticsearch.yml and refuses to run as root.
 */
final class ElasticsearchNode extends Node {
    private ElasticsearchNode(Environment environment) {
        super(environment, List.of(Netty4Plugin.class), true);
    }

    public static void main(String[] arguments) throws Exception {
        Path configuration = Path.of(System.getenv("ES_PATH_CONF"));
        if ("root".equals(System.getProperty("user.name"))) {
            System.err.println("can not run elasticsearch as root");
            System.exit(1);
        }
        Settings home =
                Settings.builder().put("path.home", configuration.getParent().toString()).build();
        Environment environment =
                InternalSettingsPreparer.prepareEnvironment(
                        home, Map.of(), configuration, () -> "node");
        Node node = new ElasticsearchNode(environment);
        CountDownLatch ended = new CountDownLatch(1);
        Runtime.getRuntime()
                .addShutdownHook(
                        new Thread(
                                () -> {
                                    try {
                                        node.close();
                                    } catch (Exception error) {
                                        error.printStackTrace();
                                    }
                                    ended.countDown();
                                }));
        node.start();
        ended.await();
    }
}
