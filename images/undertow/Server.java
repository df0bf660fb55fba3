import io.undertow.Handlers;
import io.undertow.Undertow;
import io.undertow.UndertowOptions;
import io.undertow.Version;
import io.undertow.server.HttpServerExchange;
import io.undertow.server.protocol.http.HttpAttachments;
import io.undertow.util.AttachmentKey;
import io.undertow.util.HeaderMap;
import io.undertow.util.HeaderValues;
import io.undertow.util.HttpString;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Undertow, embedded: one handler for all paths, which repairs and refuses nothing. */
final class Server {
  private static final int BACKLOG = 4096;
  private static final AttachmentKey<Integer> NUMBER = AttachmentKey.create(Integer.class);

  /** What it shows of a request: fields of one name together. */
  private record Exchange(HttpServerExchange of, byte[] content) implements Asked {
    @Override
    public String method() {
      return of.getRequestMethod().toString();
    }

    @Override
    public String path() {
      return of.getRequestPath();
    }

    @Override
    public String query() {
      return of.getQueryString();
    }

    @Override
    public String target() {
      return of.getRequestURI() + (query().isEmpty() ? "" : "?" + query());
    }

    @Override
    public String version() {
      return of.getProtocol().toString();
    }

    @Override
    public List<String[]> fields() {
      return pairs(of.getRequestHeaders());
    }

    @Override
    public List<String[]> trailers() {
      HeaderMap trailers = of.getAttachment(HttpAttachments.REQUEST_TRAILERS);
      return trailers == null ? List.of() : pairs(trailers);
    }

    @Override
    public Integer requestNumber() {
      return of.getConnection().getAttachment(NUMBER);
    }

    private static List<String[]> pairs(HeaderMap fields) {
      List<String[]> pairs = new ArrayList<>();
      for (HeaderValues values : fields) {
        values.forEach(value -> pairs.add(new String[] {values.getHeaderName().toString(), value}));
      }
      return pairs;
    }
  }

  private static void handle(HttpServerExchange exchange) {
    Integer before = exchange.getConnection().getAttachment(NUMBER);
    exchange.getConnection().putAttachment(NUMBER, before == null ? 1 : before + 1);
    if (Answers.isEarly(exchange.getRequestPath())) {
      answer(exchange, null);
    } else {
      exchange.getRequestReceiver().receiveFullBytes(Server::answer);
    }
  }

  private static void answer(HttpServerExchange exchange, byte[] content) {
    Answer answer;
    try {
      answer = Answers.to(new Exchange(exchange, content));
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
    if (answer.afterMs() == 0) {
      send(exchange, answer);
    } else {
      Runnable later = () -> send(exchange, answer);
      exchange.dispatch(
          task -> exchange.getIoThread().executeAfter(task, answer.afterMs(), TimeUnit.MILLISECONDS), later);
    }
  }

  private static void send(HttpServerExchange exchange, Answer answer) {
    exchange.setStatusCode(answer.status());
    answer.fields().forEach((name, value) -> exchange.getResponseHeaders().put(new HttpString(name), value));
    if (answer.content() == null) {
      exchange.endExchange();
    } else {
      exchange.getResponseSender().send(ByteBuffer.wrap(answer.content()));
    }
  }

  public static void main(String[] given) throws Exception {
    Options options = new Options(given, "Undertow " + Version.getVersionString());
    Undertow.Builder builder =
        Undertow.builder()
            .addHttpListener(options.port(), options.address())
            .setIoThreads(options.workers())
            .setSocketOption(org.xnio.Options.BACKLOG, BACKLOG)
            .setHandler(Handlers.httpContinueRead(Server::handle));
    if (options.tlsPort() != null) {
      builder.addHttpsListener(options.tlsPort(), options.address(), options.tls());
    }
    if (options.timeoutSeconds() != null) {
      int milliseconds = options.timeoutSeconds() * 1000;
      builder.setServerOption(UndertowOptions.REQUEST_PARSE_TIMEOUT, milliseconds);
      builder.setServerOption(UndertowOptions.NO_REQUEST_TIMEOUT, milliseconds);
      builder.setSocketOption(org.xnio.Options.READ_TIMEOUT, milliseconds);
      builder.setSocketOption(org.xnio.Options.WRITE_TIMEOUT, milliseconds);
    }
    builder.build().start();
  }
}
