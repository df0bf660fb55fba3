// fasthttp as a server: one handler for all methods and paths, which repairs and refuses nothing.
package main

import (
	"fmt"
	"log"

	"github.com/valyala/fasthttp"
	"httpmark/application"
)

type request struct{ *fasthttp.RequestCtx }

func (r request) Content() []byte { return r.PostBody() }

func (r request) Parameters() map[string]string {
	parameters := map[string]string{}
	for name, value := range r.QueryArgs().All() {
		parameters[string(name)] = string(value)
	}
	return parameters
}

func (r request) Mirror() application.Mirrored {
	header := &r.Request.Header
	fields, trailers := [][2][]byte{}, [][2][]byte{}
	for name, value := range header.AllInOrder() {
		fields = append(fields, application.Pair(name, value))
	}
	for name := range header.Trailers() {
		for _, value := range trailing(header, name) {
			trailers = append(trailers, application.Pair(name, value))
		}
	}
	number := r.ConnRequestNum()
	return application.Mirrored{
		Method:        r.Method(),
		Target:        header.RequestURI(),
		Authority:     r.Host(),
		Version:       header.Protocol(),
		Content:       append([]byte{}, r.PostBody()...),
		Fields:        fields,
		Trailers:      trailers,
		RequestNumber: &number,
	}
}

// trailing is what came of a name after the content: PeekAll tells the header section's first.
func trailing(header *fasthttp.RequestHeader, name []byte) [][]byte {
	values := header.PeekAll(string(name))
	for other := range header.All() {
		if string(other) == string(name) {
			values = values[1:]
		}
	}
	return values
}

func handle(ctx *fasthttp.RequestCtx) {
	answer := application.Respond(request{ctx})
	ctx.SetStatusCode(answer.Status)
	if answer.Type != "" {
		ctx.SetContentType(answer.Type)
	}
	if answer.Name != "" {
		ctx.Response.Header.Set(answer.Name, answer.Value)
	}
	ctx.Response.SetBodyRaw(answer.Content)
}

type silent struct{}

func (silent) Printf(string, ...any) {}

func main() {
	options := application.Read("github.com/valyala/fasthttp")
	server := &fasthttp.Server{
		Handler:      handle,
		Logger:       silent{}, // a line per bad request would cost more than the answer
		ReadTimeout:  options.Timeout,
		WriteTimeout: options.Timeout,
		IdleTimeout:  options.Timeout,
	}
	if options.TLS != "" {
		listener := application.Listen(options.TLS)
		go func() { log.Fatal(server.ServeTLS(listener, options.Cert, options.Key)) }()
	}
	listener := application.Listen(options.Address)
	fmt.Printf("listening on %s\n", listener.Addr())
	log.Fatal(server.Serve(listener))
}
