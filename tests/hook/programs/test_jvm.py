# SPDX-License-Identifier: Apache-2.0
"""A JVM: blocking sockets and channels, a pool of threads, a child."""

from pathlib import Path

from tests.hook.programs.ways import need, same

JAVA = """
import java.io.*;
import java.net.*;
import java.nio.ByteBuffer;
import java.nio.channels.*;
import java.util.concurrent.*;

class Program {
    public static void main(String[] arguments) throws Exception {
        try (var server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress())) {
            var pool = Executors.newFixedThreadPool(4);
            pool.submit(() -> {
                for (int i = 0; i < 20; i++) {
                    var socket = server.accept();
                    pool.submit(() -> {
                        try (socket) {
                            socket.getInputStream().transferTo(socket.getOutputStream());
                        }
                        return null;
                    });
                }
                return null;
            });
            for (int i = 0; i < 20; i++) {
                try (var channel = SocketChannel.open(server.getLocalSocketAddress())) {
                    channel.write(ByteBuffer.wrap(("message " + i).getBytes()));
                    channel.shutdownOutput();
                    var buffer = ByteBuffer.allocate(100);
                    while (channel.read(buffer) >= 0) {}
                    System.out.println(new String(buffer.array(), 0, buffer.position()));
                }
            }
            pool.shutdown();
        }
        try (var closed = new Socket()) {
            closed.connect(new InetSocketAddress("127.0.0.1", 1));
        } catch (ConnectException error) {
            System.out.println(error.getMessage());
        }
        var process = new ProcessBuilder("sh", "-c", "echo from a child; exit 2").start();
        System.out.print(new String(process.getInputStream().readAllBytes()));
        System.exit(process.waitFor() + 4);
    }
}
"""


def test_a_jvm(tmp_path: Path) -> None:
    need("java")
    (tmp_path / "Program.java").write_text(JAVA)
    behaviour = same(["java", "-XX:TieredStopAtLevel=1", "Program.java"], tmp_path)
    assert behaviour.code == 6
    assert "message 19\n" in behaviour.out
