// The net/http server of the Go standard library behind a ServeMux, with nothing of its own:
// what is judged here is net/http, so no handler repairs, refuses or special-cases anything.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"runtime"
	"sort"
	"strconv"
	"time"
)

var (
	hello = []byte("Hello World!")
	big   = bytes.Repeat([]byte("a"), 1<<20)
)

type countKey struct{}

// answer sends a 200 of plain text.
func answer(w http.ResponseWriter, content []byte) {
	w.Header().Set("Content-Type", "text/plain")
	w.Write(content)
}

func answerJSON(w http.ResponseWriter, value any) {
	content, err := json.Marshal(value)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(content)
}

// readAll reads the content, or answers 400 where net/http finds its framing broken.
func readAll(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	content, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return nil, false
	}
	return content, true
}

// pairs lists a header section; net/http keeps no order between names, so the names are sorted.
func pairs(header http.Header) [][2][]byte {
	names := make([]string, 0, len(header))
	for name := range header {
		names = append(names, name)
	}
	sort.Strings(names)
	list := [][2][]byte{}
	for _, name := range names {
		for _, value := range header[name] {
			list = append(list, [2][]byte{[]byte(name), []byte(value)})
		}
	}
	return list
}

// mirrored is what net/http understood; encoding/json writes every []byte as base64.
type mirrored struct {
	Method        []byte      `json:"method"`
	Target        []byte      `json:"target"`
	Authority     []byte      `json:"authority"`
	Version       []byte      `json:"version"`
	Content       []byte      `json:"content"`
	Fields        [][2][]byte `json:"fields"`
	Trailers      [][2][]byte `json:"trailers"`
	RequestNumber int         `json:"request_number"`
}

func mirror(w http.ResponseWriter, r *http.Request) {
	content, ok := readAll(w, r)
	if !ok {
		return
	}
	answerJSON(w, mirrored{
		Method:        []byte(r.Method),
		Target:        []byte(r.RequestURI),
		Authority:     []byte(r.Host),
		Version:       []byte(r.Proto),
		Content:       content,
		Fields:        pairs(r.Header),
		Trailers:      pairs(r.Trailer),
		RequestNumber: *r.Context().Value(countKey{}).(*int),
	})
}

func echo(w http.ResponseWriter, r *http.Request) {
	parameters := map[string]string{}
	for name, values := range r.URL.Query() {
		parameters[name] = values[0]
	}
	answerJSON(w, parameters)
}

func routes(static string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { answer(w, hello) })
	mux.HandleFunc("/body", func(w http.ResponseWriter, r *http.Request) {
		if content, ok := readAll(w, r); ok {
			answer(w, content)
		}
	})
	mux.HandleFunc("/echo", echo)
	mux.HandleFunc("/mirror", mirror)
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(500 * time.Millisecond)
		answer(w, hello)
	})
	mux.HandleFunc("/early", func(w http.ResponseWriter, r *http.Request) {
		// Without full duplex net/http reads the content before it sends the head.
		http.NewResponseController(w).EnableFullDuplex()
		answer(w, hello)
	})
	mux.HandleFunc("/204", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("/304", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"httpmark"`)
		w.WriteHeader(http.StatusNotModified)
	})
	mux.HandleFunc("/redirect", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/hello", http.StatusFound)
	})
	mux.HandleFunc("/big", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(big)))
		answer(w, big)
	})
	mux.HandleFunc("/404", http.NotFound)
	if static != "" {
		mux.Handle("/static/", http.StripPrefix("/static/", http.FileServer(http.Dir(static))))
	}
	mux.HandleFunc("/get-only", func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
			return
		}
		answer(w, hello)
	})
	counted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*r.Context().Value(countKey{}).(*int)++ // requests of one connection come one after another
		mux.ServeHTTP(w, r)
	})
	return counted
}

func main() {
	address := flag.String("address", "127.0.0.1", "address to listen on")
	port := flag.Int("port", 8080, "port to listen on")
	workers := flag.Int("workers", 1, "GOMAXPROCS")
	tlsPort := flag.Int("tls-port", 0, "port to serve TLS on, 0 for none")
	tlsCert := flag.String("tls-cert", "", "certificate chain, PEM")
	tlsKey := flag.String("tls-key", "", "private key, PEM")
	static := flag.String("static", "", "folder to serve under /static/")
	timeout := flag.Duration("timeout", 0, "for a head, for the content, between requests and for an answer; 0 for none")
	version := flag.Bool("version", false, "print the version of Go and stop")
	flag.Parse()
	if *version {
		fmt.Println(runtime.Version())
		os.Exit(0)
	}
	runtime.GOMAXPROCS(*workers)

	server := &http.Server{
		Handler:           routes(*static),
		ReadHeaderTimeout: *timeout,
		ReadTimeout:       *timeout,
		IdleTimeout:       *timeout,
		WriteTimeout:      *timeout,
		ConnContext: func(ctx context.Context, _ net.Conn) context.Context {
			return context.WithValue(ctx, countKey{}, new(int))
		},
		// HTTP/1.1 only, over TLS too.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
		ErrorLog:     log.New(io.Discard, "", 0), // a line per bad request would cost more than the answer
	}
	if *tlsPort != 0 {
		listener, err := net.Listen("tcp", net.JoinHostPort(*address, strconv.Itoa(*tlsPort)))
		if err != nil {
			log.Fatal(err)
		}
		go func() { log.Fatal(server.ServeTLS(listener, *tlsCert, *tlsKey)) }()
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(*address, strconv.Itoa(*port)))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("listening on %s\n", listener.Addr())
	log.Fatal(server.Serve(listener))
}
