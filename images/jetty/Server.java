import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.eclipse.jetty.http.HttpField;
import org.eclipse.jetty.http.HttpFields;
import org.eclipse.jetty.io.Content;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.HttpConnectionFactory;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.server.SslConnectionFactory;
import org.eclipse.jetty.util.BufferUtil;
import org.eclipse.jetty.util.Callback;
import org.eclipse.jetty.util.ssl.SslContextFactory;

/** Jetty, embedded: one handler for all paths, which repairs and refuses nothing. */
final class Server extends Handler.Abstract {
  private static final int BACKLOG = 4096;

  private record Exchange(Request of) implements Asked {
    @Override
    public String method() {
      return of.getMethod();
    }

    @Override
    public String path() {
      String path = of.getHttpURI().getCanonicalPath();
      return path == null ? "" : path; // of CONNECT
    }

    @Override
    public String query() {
      return of.getHttpURI().getQuery();
    }

    @Override
    public byte[] content() throws IOException {
      return BufferUtil.toArray(Content.Source.asByteBuffer(of));
    }

    @Override
    public String target() {
      return of.getHttpURI().getPathQuery(); // nothing tells the form that it came in
    }

    @Override
    public String authority() {
      return of.getHttpURI().getAuthority();
    }

    @Override
    public String version() {
      return of.getConnectionMetaData().getHttpVersion().asString();
    }

    @Override
    public List<String[]> fields() {
      return pairs(of.getHeaders());
    }

    @Override
    public List<String[]> trailers() {
      HttpFields trailers = of.getTrailers();
      return trailers == null ? List.of() : pairs(trailers);
    }

    @Override
    public Integer requestNumber() {
      return (int) of.getConnectionMetaData().getConnection().getMessagesIn();
    }

    private static List<String[]> pairs(HttpFields fields) {
      List<String[]> pairs = new ArrayList<>();
      for (HttpField field : fields) {
        pairs.add(new String[] {field.getName(), field.getValue() == null ? "" : field.getValue()});
      }
      return pairs;
    }
  }

  @Override
  public boolean handle(Request request, Response response, Callback callback) throws IOException {
    Answer answer = Answers.to(new Exchange(request)).waited();
    response.setStatus(answer.status());
    answer.fields().forEach(response.getHeaders()::put);
    byte[] content = answer.content();
    if (content != null) {
      response.getHeaders().put("Content-Length", content.length);
    }
    response.write(true, content == null ? null : ByteBuffer.wrap(content), callback);
    return true;
  }

  private static ServerConnector connector(
      org.eclipse.jetty.server.Server server, Options options, int port, SslContextFactory.Server tls) {
    HttpConnectionFactory http = new HttpConnectionFactory(new HttpConfiguration());
    ServerConnector connector =
        tls == null
            ? new ServerConnector(server, http)
            : new ServerConnector(server, new SslConnectionFactory(tls, "http/1.1"), http);
    connector.setHost(options.address());
    connector.setPort(port);
    connector.setAcceptQueueSize(BACKLOG);
    if (options.timeoutSeconds() != null) {
      connector.setIdleTimeout(options.timeoutSeconds() * 1000L);
    }
    return connector;
  }

  public static void main(String[] given) throws Exception {
    Options options = new Options(given, "Jetty " + org.eclipse.jetty.server.Server.getVersion());
    org.eclipse.jetty.server.Server server = new org.eclipse.jetty.server.Server();
    server.addConnector(connector(server, options, options.port(), null));
    if (options.tlsPort() != null) {
      SslContextFactory.Server tls = new SslContextFactory.Server();
      tls.setSslContext(options.tls());
      server.addConnector(connector(server, options, options.tlsPort(), tls));
    }
    server.setHandler(new Server());
    server.start();
    server.join();
  }
}
