import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.ChannelPipeline;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.handler.codec.http.DefaultFullHttpResponse;
import io.netty.handler.codec.http.FullHttpRequest;
import io.netty.handler.codec.http.FullHttpResponse;
import io.netty.handler.codec.http.HttpHeaders;
import io.netty.handler.codec.http.HttpObjectAggregator;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpServerCodec;
import io.netty.handler.codec.http.HttpServerKeepAliveHandler;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.handler.flow.FlowControlHandler;
import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslContextBuilder;
import io.netty.handler.timeout.ReadTimeoutHandler;
import io.netty.util.Version;
import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** Netty's HttpServerCodec with the handlers that Netty brings: what is read is answered, and nothing repaired. */
final class Server extends SimpleChannelInboundHandler<FullHttpRequest> {
  private static final int BACKLOG = 4096;
  private static final int MAX_CONTENT = 64 << 20;
  private int requests;

  private record Exchange(FullHttpRequest of, Integer requestNumber) implements Asked {
    @Override
    public String method() {
      return of.method().name();
    }

    @Override
    public String path() {
      return of.uri().split("\\?", 2)[0];
    }

    @Override
    public String query() {
      int at = of.uri().indexOf('?');
      return at < 0 ? null : of.uri().substring(at + 1);
    }

    @Override
    public byte[] content() {
      return ByteBufUtil.getBytes(of.content());
    }

    @Override
    public String target() {
      return of.uri();
    }

    @Override
    public String version() {
      return of.protocolVersion().text();
    }

    @Override
    public List<String[]> fields() {
      return pairs(of.headers());
    }

    @Override
    public List<String[]> trailers() {
      return pairs(of.trailingHeaders());
    }

    private static List<String[]> pairs(HttpHeaders fields) {
      List<String[]> pairs = new ArrayList<>();
      for (Map.Entry<String, String> field : fields) {
        pairs.add(new String[] {field.getKey(), field.getValue()});
      }
      return pairs;
    }
  }

  @Override
  protected void channelRead0(ChannelHandlerContext context, FullHttpRequest request) throws IOException {
    requests++;
    // The codec hands on what it cannot read, marked so, and leaves the answer to its user.
    boolean isBroken = request.decoderResult().isFailure();
    Answer answer = isBroken ? Answers.badRequest() : Answers.to(new Exchange(request, requests));
    FullHttpResponse response = response(answer);
    if (isBroken) {
      response.headers().set("Connection", "close");
    }
    if (answer.afterMs() == 0) {
      context.writeAndFlush(response);
    } else {
      context.channel().config().setAutoRead(false); // FlowControlHandler keeps the requests that come meanwhile
      context.executor().schedule(() -> sendLate(context, response), answer.afterMs(), TimeUnit.MILLISECONDS);
    }
  }

  private static FullHttpResponse response(Answer answer) {
    byte[] content = answer.content();
    FullHttpResponse response =
        new DefaultFullHttpResponse(
            HttpVersion.HTTP_1_1,
            HttpResponseStatus.valueOf(answer.status()),
            content == null ? Unpooled.EMPTY_BUFFER : Unpooled.wrappedBuffer(content));
    answer.fields().forEach(response.headers()::set);
    if (content != null) {
      response.headers().set("Content-Length", content.length);
    }
    return response;
  }

  private static void sendLate(ChannelHandlerContext context, FullHttpResponse response) {
    context.writeAndFlush(response);
    context.channel().config().setAutoRead(true);
  }

  @Override
  public void exceptionCaught(ChannelHandlerContext context, Throwable error) {
    context.close();
  }

  private record Pipeline(SslContext tls, Integer timeoutSeconds) {
    void fill(SocketChannel channel) {
      ChannelPipeline handlers = channel.pipeline();
      if (tls != null) {
        handlers.addLast(tls.newHandler(channel.alloc()));
      }
      if (timeoutSeconds != null) {
        handlers.addLast(new ReadTimeoutHandler(timeoutSeconds));
      }
      handlers.addLast(
          new HttpServerCodec(),
          new HttpServerKeepAliveHandler(),
          new HttpObjectAggregator(MAX_CONTENT),
          new FlowControlHandler(),
          new Server());
    }
  }

  private static void listen(EventLoopGroup group, Options options, int port, SslContext tls) throws Exception {
    Pipeline pipeline = new Pipeline(tls, options.timeoutSeconds());
    new ServerBootstrap()
        .group(group)
        .channel(NioServerSocketChannel.class)
        .option(ChannelOption.SO_BACKLOG, BACKLOG)
        .childHandler(
            new ChannelInitializer<SocketChannel>() {
              @Override
              protected void initChannel(SocketChannel channel) {
                pipeline.fill(channel);
              }
            })
        .bind(options.address(), port)
        .sync();
  }

  public static void main(String[] given) throws Exception {
    Options options = new Options(given, "Netty " + Version.identify().get("netty-codec-http").artifactVersion());
    EventLoopGroup group = new MultiThreadIoEventLoopGroup(options.workers(), NioIoHandler.newFactory());
    if (options.tlsPort() != null) {
      File certificate = new File(options.words.get("--tls-cert"));
      SslContext tls = SslContextBuilder.forServer(certificate, new File(options.words.get("--tls-key"))).build();
      listen(group, options, options.tlsPort(), tls);
    }
    listen(group, options, options.port(), null);
  }
}
