// Hertz as a server, on netpoll: one handler for all methods and paths, which repairs and refuses
// nothing.
package main

import (
	"context"
	"io"
	"time"

	"github.com/cloudwego/hertz/pkg/app"
	"github.com/cloudwego/hertz/pkg/app/server"
	"github.com/cloudwego/hertz/pkg/common/config"
	"github.com/cloudwego/hertz/pkg/common/hlog"
	"httpmark/application"
)

type request struct{ *app.RequestContext }

func (r request) Content() []byte { return r.Request.Body() }

func (r request) Parameters() map[string]string {
	parameters := map[string]string{}
	r.QueryArgs().VisitAll(func(name, value []byte) { parameters[string(name)] = string(value) })
	return parameters
}

func (r request) Mirror() application.Mirrored {
	header := &r.Request.Header
	fields, trailers := [][2][]byte{}, [][2][]byte{}
	header.VisitAll(func(name, value []byte) {
		fields = append(fields, application.Pair(name, value))
	})
	header.Trailer().VisitAll(func(name, value []byte) {
		trailers = append(trailers, application.Pair(name, value))
	})
	return application.Mirrored{
		Method:    r.Method(),
		Target:    header.RequestURI(),
		Authority: r.Host(),
		Version:   []byte(header.GetProtocol()),
		Content:   append([]byte{}, r.Content()...),
		Fields:    fields,
		Trailers:  trailers,
	}
}

func handle(_ context.Context, ctx *app.RequestContext) {
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

func main() {
	options := application.Read("github.com/cloudwego/hertz")
	hlog.SetOutput(io.Discard) // a line per bad request would cost more than the answer
	settings := []config.Option{
		server.WithHostPorts(options.Address),
		server.WithExitWaitTime(time.Second), // SIGTERM begins a graceful stop
	}
	if options.Timeout != 0 {
		settings = append(settings,
			server.WithReadTimeout(options.Timeout),
			server.WithIdleTimeout(options.Timeout),
			server.WithWriteTimeout(options.Timeout))
	}
	hertz := server.Default(settings...)
	hertz.NoRoute(handle) // what no route takes, of any method: here all
	hertz.Spin()
}
