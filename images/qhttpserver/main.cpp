// QHttpServer with nothing of its own: what is judged here is Qt, so nothing repairs, refuses or
// special-cases a request. No route is registered: the missing handler answers whatever Qt let
// through, which is how the published figures came about.
#include <QtCore/QByteArray>
#include <QtCore/QCoreApplication>
#include <QtCore/QEventLoop>
#include <QtCore/QFile>
#include <QtCore/QJsonArray>
#include <QtCore/QJsonDocument>
#include <QtCore/QJsonObject>
#include <QtCore/QStringList>
#include <QtCore/QThread>
#include <QtCore/QTimer>
#include <QtCore/QUrlQuery>
#include <QtHttpServer/QHttpServer>
#include <QtHttpServer/QHttpServerRequest>
#include <QtHttpServer/QHttpServerResponder>
#include <QtNetwork/QHostAddress>
#include <QtNetwork/QHttpHeaders>
#include <QtNetwork/QSslCertificate>
#include <QtNetwork/QSslConfiguration>
#include <QtNetwork/QSslKey>
#include <QtNetwork/QSslServer>
#include <QtNetwork/QTcpServer>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace {

using Status = QHttpServerResponder::StatusCode;

void answer(QHttpServerResponder& responder, const QByteArray& content,
            const QByteArray& kind = "text/plain", Status status = Status::Ok) {
  responder.write(content, kind, status);
}

QByteArray echoed(const QHttpServerRequest& request) {
  QJsonObject parameters;
  const auto items = request.query().queryItems(QUrl::FullyDecoded);
  for (const auto& item : items) {
    if (!parameters.contains(item.first)) parameters.insert(item.first, item.second);
  }
  return QJsonDocument(parameters).toJson(QJsonDocument::Compact);
}

QJsonValue octets(const QByteArray& value) {
  return QString::fromLatin1(value.toBase64());
}

// The token, or null where Qt keeps only that it knows no such method.
QJsonValue method(const QHttpServerRequest& request) {
  using Method = QHttpServerRequest::Method;
  switch (request.method()) {
    case Method::Get: return octets("GET");
    case Method::Put: return octets("PUT");
    case Method::Delete: return octets("DELETE");
    case Method::Post: return octets("POST");
    case Method::Head: return octets("HEAD");
    case Method::Options: return octets("OPTIONS");
    case Method::Patch: return octets("PATCH");
    case Method::Connect: return octets("CONNECT");
    case Method::Trace: return octets("TRACE");
    default: return QJsonValue::Null;
  }
}

// What Qt understood: a URL, of which target and authority are parts. Version, trailers and the
// connection it does not show to a handler.
QByteArray mirrored(const QHttpServerRequest& request) {
  QJsonArray fields;
  const QHttpHeaders headers = request.headers();
  for (qsizetype i = 0; i < headers.size(); ++i) {
    const QLatin1StringView name = headers.nameAt(i);
    const QByteArrayView value = headers.valueAt(i);
    fields.append(QJsonArray{octets(QByteArray(name.data(), name.size())),
                             octets(QByteArray(value.data(), value.size()))});
  }
  const QUrl url = request.url();
  return QJsonDocument(QJsonObject{
                           {"method", method(request)},
                           {"target", octets(url.toEncoded(QUrl::RemoveScheme | QUrl::RemoveAuthority))},
                           {"authority", octets(url.authority(QUrl::FullyEncoded).toLatin1())},
                           {"version", QJsonValue::Null},
                           {"content", octets(request.body())},
                           {"fields", fields},
                           {"trailers", QJsonValue::Null},
                           {"request_number", QJsonValue::Null},
                       })
      .toJson(QJsonDocument::Compact);
}

// The paths of `behave`; false where the path is none of them. Qt reads the content before it calls
// a handler, so /early cannot be early: it is answered like any other path.
bool behaved(const QString& path, const QHttpServerRequest& request,
             QHttpServerResponder& responder) {
  using Method = QHttpServerRequest::Method;
  QHttpHeaders headers;
  if (path == QLatin1String("/slow")) {
    // Shared, because what a timer calls has to be copyable.
    auto later = std::make_shared<QHttpServerResponder>(std::move(responder));
    QTimer::singleShot(500, Qt::PreciseTimer, [later] { answer(*later, "Hello World!"); });
  } else if (path == QLatin1String("/204")) {
    responder.write(Status::NoContent);
  } else if (path == QLatin1String("/304")) {
    headers.append(QHttpHeaders::WellKnownHeader::ETag, "\"hello\"");
    responder.write(headers, Status::NotModified);
  } else if (path == QLatin1String("/redirect")) {
    headers.append(QHttpHeaders::WellKnownHeader::Location, "/hello");
    responder.write(headers, Status::Found);
  } else if (path == QLatin1String("/big")) {
    answer(responder, QByteArray(1 << 20, 'x'));
  } else if (path == QLatin1String("/404")) {
    answer(responder, "Not Found", "text/plain", Status::NotFound);
  } else if (path == QLatin1String("/get-only") && request.method() != Method::Get &&
             request.method() != Method::Head) {
    headers.append(QHttpHeaders::WellKnownHeader::Allow, "GET, HEAD");
    responder.write(headers, Status::MethodNotAllowed);
  } else {
    return false;
  }
  return true;
}

void handle(const QHttpServerRequest& request, QHttpServerResponder& responder) {
  const QString path = request.url().path();
  if (path == QLatin1String("/body")) return answer(responder, request.body());
  if (path == QLatin1String("/echo")) return answer(responder, echoed(request), "application/json");
  if (path == QLatin1String("/mirror")) {
    return answer(responder, mirrored(request), "application/json");
  }
  if (!behaved(path, request, responder)) answer(responder, "Hello World!");
}

// A listener of its own for each worker; the kernel spreads connections over them.
int listener(const QHostAddress& address, quint16 port) {
  const bool six = address.protocol() == QAbstractSocket::IPv6Protocol;
  const int fd = ::socket(six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int on = 1;
  if (fd < 0) return -1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  sockaddr_storage storage{};
  socklen_t size = 0;
  if (six) {
    auto* to = reinterpret_cast<sockaddr_in6*>(&storage);
    to->sin6_family = AF_INET6;
    to->sin6_port = htons(port);
    const Q_IPV6ADDR octets = address.toIPv6Address();
    std::memcpy(&to->sin6_addr, &octets, sizeof octets);
    size = sizeof *to;
  } else {
    auto* to = reinterpret_cast<sockaddr_in*>(&storage);
    to->sin_family = AF_INET;
    to->sin_port = htons(port);
    to->sin_addr.s_addr = htonl(address.toIPv4Address());
    size = sizeof *to;
  }
  if (::bind(fd, reinterpret_cast<sockaddr*>(&storage), size) != 0 || ::listen(fd, 4096) != 0) {
    ::close(fd);
    return -1;
  }
  return fd;
}

void bind(QHttpServer& server, QTcpServer* tcp, int fd) {
  tcp->setListenBacklogSize(4096);
  if (!tcp->setSocketDescriptor(fd) || !server.bind(tcp)) {
    std::fprintf(stderr, "qhttpserver: cannot serve on the socket\n");
    std::exit(1);
  }
}

// A QHttpServer in the thread that calls this; without TLS secure_fd is -1.
std::unique_ptr<QHttpServer> serve(int fd, int secure_fd, const QSslConfiguration& tls) {
  auto server = std::make_unique<QHttpServer>();
  server->setMissingHandler(server.get(),
                            [](const QHttpServerRequest& request, QHttpServerResponder& responder) {
                              handle(request, responder);
                            });
  bind(*server, new QTcpServer(server.get()), fd);
  if (secure_fd >= 0) {
    auto* secure = new QSslServer(server.get());
    secure->setSslConfiguration(tls);
    bind(*server, secure, secure_fd);
  }
  return server;
}

QSslConfiguration configuration(const QString& certificate, const QString& key) {
  QFile file(key);
  QSslConfiguration tls = QSslConfiguration::defaultConfiguration();
  tls.setLocalCertificateChain(QSslCertificate::fromPath(certificate));
  if (file.open(QIODevice::ReadOnly)) {
    const QByteArray text = file.readAll();
    for (const auto algorithm : {QSsl::Ec, QSsl::Rsa}) {
      const QSslKey read(text, algorithm);
      if (!read.isNull()) tls.setPrivateKey(read);
    }
  }
  tls.setPeerVerifyMode(QSslSocket::VerifyNone);
  if (tls.localCertificateChain().isEmpty() || tls.privateKey().isNull()) {
    std::fprintf(stderr, "qhttpserver: cannot read %s and %s\n", qPrintable(certificate),
                 qPrintable(key));
    std::exit(1);
  }
  return tls;
}

int listener_or_exit(const QHostAddress& address, quint16 port) {
  const int fd = listener(address, port);
  if (fd < 0) {
    std::fprintf(stderr, "qhttpserver: cannot listen on %s port %d: %s\n",
                 qPrintable(address.toString()), port, std::strerror(errno));
    std::exit(1);
  }
  return fd;
}

[[noreturn]] void usage(const QString& complaint) {
  std::fprintf(stderr, "qhttpserver: %s: [--address A] [--port P] [--workers N] [--version]\n",
               qPrintable(complaint));
  std::exit(2);
}

}  // namespace

int main(int argc, char** argv) {
  QCoreApplication app(argc, argv);
  QHostAddress address(QHostAddress::LocalHost);
  quint16 port = 8080;
  quint16 tls_port = 0;
  QString certificate, key;
  int workers = 1;
  const QStringList words = QCoreApplication::arguments();
  for (int i = 1; i < words.size(); i += 2) {
    if (words[i] == QLatin1String("--version")) {
      std::printf("Qt %s\n", qVersion());
      return 0;
    }
    if (i + 1 == words.size()) usage(words[i] + QLatin1String(" needs a value"));
    bool good = true;
    if (words[i] == QLatin1String("--address")) {
      good = address.setAddress(words[i + 1]);
    } else if (words[i] == QLatin1String("--port")) {
      port = words[i + 1].toUShort(&good);
    } else if (words[i] == QLatin1String("--workers")) {
      workers = words[i + 1].toInt(&good);
      good = good && workers > 0;
    } else if (words[i] == QLatin1String("--tls-port")) {
      tls_port = words[i + 1].toUShort(&good);
    } else if (words[i] == QLatin1String("--tls-cert")) {
      certificate = words[i + 1];
    } else if (words[i] == QLatin1String("--tls-key")) {
      key = words[i + 1];
    } else {
      usage(QLatin1String("unknown option ") + words[i]);
    }
    if (!good) usage(QLatin1String("bad value for ") + words[i] + QLatin1String(": ") + words[i + 1]);
  }

  const QSslConfiguration tls = tls_port ? configuration(certificate, key) : QSslConfiguration();
  std::vector<std::pair<int, int>> sockets;
  for (int i = 0; i < workers; ++i) {
    sockets.emplace_back(listener_or_exit(address, port),
                         tls_port ? listener_or_exit(address, tls_port) : -1);
  }
  const auto first = serve(sockets[0].first, sockets[0].second, tls);
  for (int i = 1; i < workers; ++i) {
    // These threads end with the process.
    QThread::create([pair = sockets[static_cast<std::size_t>(i)], tls] {
      const auto server = serve(pair.first, pair.second, tls);
      QEventLoop().exec();
    })->start();
  }
  std::printf("listening on %s:%d\n", qPrintable(address.toString()), port);
  std::fflush(stdout);
  return QCoreApplication::exec();
}
