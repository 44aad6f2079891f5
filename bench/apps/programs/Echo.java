import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.Random;

/** An echo in two styles: `blocking-server PORT`, `nio-server PORT`, `blocking-client PORT N`, `nio-client PORT N`. */
public class Echo {
    static final InetAddress HOST = InetAddress.getLoopbackAddress();
    static final int[] SIZES = {1, 60, 1500, 20_000, 250_000};

    public static void main(String[] args) throws Exception {
        int port = Integer.parseInt(args[1]);
        switch (args[0]) {
            case "blocking-server" -> blockingServer(port);
            case "nio-server" -> nioServer(port);
            case "blocking-client" -> blockingClient(port, Integer.parseInt(args[2]));
            case "nio-client" -> nioClient(port, Integer.parseInt(args[2]));
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    static void blockingServer(int port) throws Exception {
        try (ServerSocket listener = new ServerSocket(port, 64, HOST)) {
            while (true) {
                Socket socket = listener.accept();
                new Thread(() -> echo(socket)).start();
            }
        }
    }

    static void echo(Socket socket) {
        try (socket) {
            socket.setTcpNoDelay(true);
            InputStream in = socket.getInputStream();
            OutputStream out = socket.getOutputStream();
            byte[] buffer = new byte[65536];
            for (int count = in.read(buffer); count > 0; count = in.read(buffer)) {
                out.write(buffer, 0, count);
            }
        } catch (java.io.IOException error) {
            System.err.println(error);
        }
    }

    /** One thread, one selector; a connection is not read again before its echo has gone out. */
    static void nioServer(int port) throws Exception {
        Selector selector = Selector.open();
        ServerSocketChannel listener = ServerSocketChannel.open().bind(new InetSocketAddress(HOST, port));
        listener.configureBlocking(false);
        listener.register(selector, SelectionKey.OP_ACCEPT);
        while (true) {
            selector.select();
            for (Iterator<SelectionKey> it = selector.selectedKeys().iterator(); it.hasNext(); it.remove()) {
                SelectionKey key = it.next();
                if (key.isAcceptable()) {
                    SocketChannel channel = listener.accept();
                    channel.configureBlocking(false);
                    ByteBuffer buffer = ByteBuffer.allocateDirect(65536);
                    channel.register(selector, SelectionKey.OP_READ, buffer);
                } else {
                    nioEcho(key);
                }
            }
        }
    }

    static void nioEcho(SelectionKey key) throws Exception {
        SocketChannel channel = (SocketChannel) key.channel();
        ByteBuffer buffer = (ByteBuffer) key.attachment();
        if (key.isReadable()) {
            if (channel.read(buffer.clear()) < 0) {
                channel.close();
                return;
            }
            buffer.flip();
        }
        channel.write(buffer);
        key.interestOps(buffer.hasRemaining() ? SelectionKey.OP_WRITE : SelectionKey.OP_READ);
    }

    static byte[] message(Random random, int index) {
        byte[] bytes = new byte[SIZES[index % SIZES.length]];
        random.nextBytes(bytes);
        return bytes;
    }

    /** The sender is a thread of its own, so that both directions are busy at once on one socket. */
    static void blockingClient(int port, int messages) throws Exception {
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        try (Socket socket = new Socket(HOST, port)) {
            Thread sender = new Thread(() -> {
                try {
                    Random random = new Random(42);
                    for (int i = 0; i < messages; i++) {
                        socket.getOutputStream().write(message(random, i));
                    }
                    socket.shutdownOutput();
                } catch (java.io.IOException error) {
                    System.err.println(error);
                }
            });
            sender.start();
            byte[] buffer = new byte[65536];
            InputStream in = socket.getInputStream();
            for (int count = in.read(buffer); count > 0; count = in.read(buffer)) {
                digest.update(buffer, 0, count);
            }
            sender.join();
        }
        System.out.println(HexFormat.of().formatHex(digest.digest()));
    }

    static void nioClient(int port, int messages) throws Exception {
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        Random random = new Random(42);
        Selector selector = Selector.open();
        SocketChannel channel = SocketChannel.open(new InetSocketAddress(HOST, port));
        channel.configureBlocking(false);
        SelectionKey key = channel.register(selector, SelectionKey.OP_READ | SelectionKey.OP_WRITE);
        ByteBuffer out = ByteBuffer.wrap(message(random, 0));
        ByteBuffer in = ByteBuffer.allocate(65536);
        int sent = 1;
        while (true) {
            selector.select();
            selector.selectedKeys().clear();
            if (key.isWritable()) {
                channel.write(out);
                if (!out.hasRemaining() && sent < messages) {
                    out = ByteBuffer.wrap(message(random, sent++));
                } else if (!out.hasRemaining()) {
                    channel.shutdownOutput();
                    key.interestOps(SelectionKey.OP_READ);
                }
            }
            if (key.isReadable()) {
                if (channel.read(in.clear()) < 0) {
                    break;
                }
                digest.update(in.flip());
            }
        }
        channel.close();
        System.out.println(HexFormat.of().formatHex(digest.digest()));
    }
}
