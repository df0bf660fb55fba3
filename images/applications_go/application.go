// Package application is what images/README.md asks of a server, for servers in Go that bring an
// interface of their own: one for all of them. It repairs nothing and refuses nothing: what it
// tells is what the server says of the request.
package application

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"
)

var (
	hello = []byte("Hello World!")
	big   = bytes.Repeat([]byte("a"), 1<<20)
)

// Request is what a server lets its handlers see.
type Request interface {
	Method() []byte
	Path() []byte // without the query
	Content() []byte
	Parameters() map[string]string // of the query, decoded
	Mirror() Mirrored
}

// Mirrored is what the server understood. What it does not compute stays nil, and is told as null;
// encoding/json writes every []byte as base64.
type Mirrored struct {
	Method        []byte      `json:"method"`
	Target        []byte      `json:"target"`
	Authority     []byte      `json:"authority"`
	Version       []byte      `json:"version"`
	Content       []byte      `json:"content"`
	Fields        [][2][]byte `json:"fields"`
	Trailers      [][2][]byte `json:"trailers"`
	RequestNumber *uint64     `json:"request_number"`
}

// Pair copies a field: servers reuse their buffers.
func Pair(name, value []byte) [2][]byte {
	return [2][]byte{append([]byte{}, name...), append([]byte{}, value...)}
}

// Answer is what the server is to send.
type Answer struct {
	Status      int
	Type        string // Content-Type, none if empty
	Name, Value string // one more field, none if empty
	Content     []byte
}

func plain(status int, content []byte) Answer {
	return Answer{Status: status, Type: "text/plain", Content: content}
}

func asJSON(value any) Answer {
	content, err := json.Marshal(value)
	if err != nil {
		return plain(500, []byte(err.Error()))
	}
	return Answer{Status: 200, Type: "application/json", Content: content}
}

// Respond answers any request, of whatever method and path.
func Respond(request Request) Answer {
	switch string(request.Path()) {
	case "/body":
		return plain(200, request.Content())
	case "/echo":
		return asJSON(request.Parameters())
	case "/mirror":
		return asJSON(request.Mirror())
	case "/slow":
		time.Sleep(500 * time.Millisecond)
		return plain(200, hello)
	case "/204":
		return Answer{Status: 204}
	case "/304":
		return Answer{Status: 304, Name: "ETag", Value: `"httpmark"`}
	case "/redirect":
		return Answer{Status: 302, Name: "Location", Value: "/hello"}
	case "/big":
		return plain(200, big)
	case "/404":
		return plain(404, []byte("Not Found"))
	case "/get-only":
		if method := string(request.Method()); method != "GET" && method != "HEAD" {
			refusal := plain(405, []byte("Method Not Allowed"))
			refusal.Name, refusal.Value = "Allow", "GET, HEAD"
			return refusal
		}
	}
	return plain(200, hello)
}

// Options is what a server is told when it is started.
type Options struct {
	Address string // with the port
	TLS     string // where to serve TLS, with the port; empty for nowhere
	Cert    string
	Key     string
	Timeout time.Duration // for a head, for the content, between requests and for an answer
}

// Read takes the options of the command line, and sets GOMAXPROCS to the number of workers. With
// --version it prints the version of the server's module, and stops.
func Read(module string) Options {
	address := flag.String("address", "127.0.0.1", "address to listen on")
	port := flag.Int("port", 8080, "port to listen on")
	workers := flag.Int("workers", 1, "GOMAXPROCS")
	tlsPort := flag.Int("tls-port", 0, "port to serve TLS on, 0 for none")
	tlsCert := flag.String("tls-cert", "", "certificate chain, PEM")
	tlsKey := flag.String("tls-key", "", "private key, PEM")
	timeout := flag.Duration("timeout", 0, "for a head, for the content, between requests and for an answer; 0 for the server's own")
	version := flag.Bool("version", false, "print the version of the server and stop")
	flag.Parse()
	if *version {
		printVersion(module)
		os.Exit(0)
	}
	runtime.GOMAXPROCS(*workers)
	options := Options{
		Address: net.JoinHostPort(*address, strconv.Itoa(*port)),
		Cert:    *tlsCert,
		Key:     *tlsKey,
		Timeout: *timeout,
	}
	if *tlsPort != 0 {
		options.TLS = net.JoinHostPort(*address, strconv.Itoa(*tlsPort))
	}
	return options
}

func printVersion(module string) {
	info, _ := debug.ReadBuildInfo()
	for _, one := range info.Deps {
		if one.Path == module {
			fmt.Println(one.Version)
		}
	}
}

// Listen listens, or ends the program.
func Listen(endpoint string) net.Listener {
	listener, err := net.Listen("tcp", endpoint)
	if err != nil {
		log.Fatal(err)
	}
	return listener
}
