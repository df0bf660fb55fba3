import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;

/** An application on the JDK's own server, as its documentation shows it: a handler for a context. */
public class App {
    public static void main(String[] args) throws IOException {
        int port = Integer.parseInt(args[0]);
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
        server.createContext("/", exchange -> handle(exchange, "/", "GET"));
        server.createContext("/notes", exchange -> handle(exchange, "/notes", "POST"));
        server.setExecutor(Executors.newCachedThreadPool());
        server.start();
    }

    private static void handle(HttpExchange exchange, String path, String method) throws IOException {
        byte[] content = exchange.getRequestBody().readAllBytes();
        if (!exchange.getRequestURI().getPath().equals(path)) {
            exchange.sendResponseHeaders(404, -1);
        } else if (!exchange.getRequestMethod().equals(method)) {
            exchange.getResponseHeaders().set("Allow", method);
            exchange.sendResponseHeaders(405, -1);
        } else {
            byte[] answer = ("read " + content.length + " bytes").getBytes();
            exchange.sendResponseHeaders(200, answer.length);
            exchange.getResponseBody().write(answer);
        }
        exchange.close();
    }
}
