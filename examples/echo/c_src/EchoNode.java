/*
 * EchoNode.java - a node in Java: {Pid, Ref, Bin} is answered with {Ref, Bin}.
 *
 * As echo_node.c: name and cookie come as a line on standard input, the port
 * goes as a line to standard output, no epmd is asked, one connection is served.
 * It ends with that, and when standard input is closed, which a thread of its
 * own waits for.
 */
import com.ericsson.otp.erlang.OtpConnection;
import com.ericsson.otp.erlang.OtpErlangExit;
import com.ericsson.otp.erlang.OtpErlangObject;
import com.ericsson.otp.erlang.OtpErlangPid;
import com.ericsson.otp.erlang.OtpErlangTuple;
import com.ericsson.otp.erlang.OtpSelf;
import com.ericsson.otp.erlang.OtpServerTransport;
import com.ericsson.otp.erlang.OtpSocketTransport;
import com.ericsson.otp.erlang.OtpSocketTransportFactory;
import com.ericsson.otp.erlang.OtpTransport;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;

public final class EchoNode {
    private EchoNode() {}

    /* Jinterface's own listens on all interfaces. */
    private static final class Loopback extends OtpSocketTransportFactory {
        @Override
        public OtpServerTransport createServerTransport(int port) throws IOException {
            ServerSocket listener =
                new ServerSocket(port, 1, InetAddress.getLoopbackAddress());
            return new OtpServerTransport() {
                @Override
                public int getLocalPort() {
                    return listener.getLocalPort();
                }

                @Override
                public OtpTransport accept() throws IOException {
                    Socket socket = listener.accept();
                    socket.setTcpNoDelay(true);
                    return new OtpSocketTransport(socket);
                }

                @Override
                public void close() throws IOException {
                    listener.close();
                }
            };
        }
    }

    private static void endWith(BufferedReader in) {
        Thread watcher = new Thread(() -> {
            try {
                while (in.read() >= 0) {
                    /* nothing more is to come */
                }
            } catch (IOException e) {
                /* the end, too */
            }
            Runtime.getRuntime().halt(0);
        });
        watcher.setDaemon(true);
        watcher.start();
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        String[] who = in.readLine().split(" ");
        OtpSelf self = new OtpSelf(who[0] + "@localhost", who[1], 0, new Loopback());
        System.out.println(self.port());
        endWith(in);
        OtpConnection connection = self.accept();
        try {
            while (true) {
                OtpErlangTuple message = (OtpErlangTuple) connection.receive();
                connection.send((OtpErlangPid) message.elementAt(0),
                    new OtpErlangTuple(new OtpErlangObject[] {
                        message.elementAt(1), message.elementAt(2)}));
            }
        } catch (IOException | OtpErlangExit e) {
            connection.close();     /* the other end has closed */
        }
    }
}
