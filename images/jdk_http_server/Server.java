import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import com.sun.net.httpserver.HttpsConfigurator;
import com.sun.net.httpserver.HttpsServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** The HTTP server of the JDK: one handler for all paths, which repairs and refuses nothing. */
final class Server {
  private static final int BACKLOG = 4096;

  /** What it shows of a request: names of fields as it writes them, and no trailer fields. */
  private record Exchange(HttpExchange of) implements Asked {
    @Override
    public String method() {
      return of.getRequestMethod();
    }

    @Override
    public String path() {
      return of.getRequestURI().getRawPath();
    }

    @Override
    public String query() {
      return of.getRequestURI().getRawQuery();
    }

    @Override
    public byte[] content() throws IOException {
      return of.getRequestBody().readAllBytes();
    }

    @Override
    public String target() {
      return of.getRequestURI().toString();
    }

    @Override
    public String version() {
      return of.getProtocol();
    }

    @Override
    public List<String[]> fields() {
      List<String[]> pairs = new ArrayList<>();
      of.getRequestHeaders().forEach((name, values) -> values.forEach(value -> pairs.add(new String[] {name, value})));
      return pairs;
    }
  }

  private static Answer answer(HttpExchange exchange) {
    try {
      return Answers.to(new Exchange(exchange)).waited();
    } catch (IOException error) { // its framing is broken, or it has ended too early
      exchange.getResponseHeaders().set("Connection", "close");
      return Answers.badRequest();
    }
  }

  private static void handle(HttpExchange exchange) throws IOException {
    try (exchange) {
      Answer answer = answer(exchange);
      answer.fields().forEach(exchange.getResponseHeaders()::set);
      byte[] content = answer.content();
      boolean isHead = exchange.getRequestMethod().equals("HEAD");
      if (isHead && content != null) { // as its documentation says of HEAD
        exchange.getResponseHeaders().set("Content-Length", Integer.toString(content.length));
      }
      boolean isEmpty = isHead || content == null || content.length == 0;
      exchange.sendResponseHeaders(answer.status(), isEmpty ? -1 : content.length);
      if (!isEmpty) {
        exchange.getResponseBody().write(content);
      }
    }
  }

  private static void start(HttpServer server, ExecutorService threads) {
    server.createContext("/", Server::handle);
    server.setExecutor(threads);
    server.start();
  }

  public static void main(String[] given) throws Exception {
    Options options = new Options(given, "JDK " + Runtime.version());
    if (options.timeoutSeconds() != null) {
      System.setProperty("sun.net.httpserver.clockTick", "1000");
      for (String name : List.of("maxReqTime", "maxRspTime", "idleInterval")) {
        System.setProperty("sun.net.httpserver." + name, options.timeoutSeconds().toString());
      }
    }
    ExecutorService threads = Executors.newCachedThreadPool();
    if (options.tlsPort() != null) {
      InetSocketAddress where = new InetSocketAddress(options.address(), options.tlsPort());
      HttpsServer secure = HttpsServer.create(where, BACKLOG);
      secure.setHttpsConfigurator(new HttpsConfigurator(options.tls()));
      start(secure, threads);
    }
    start(HttpServer.create(new InetSocketAddress(options.address(), options.port()), BACKLOG), threads);
  }
}
