// Sends every message back at any path: gorilla/websocket on one CPU.
package main

import (
	"net/http"
	"os"

	"github.com/gorilla/websocket"
)

func main() {
	upgrader := websocket.Upgrader{}
	handler := func(w http.ResponseWriter, r *http.Request) {
		connection, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer connection.Close()
		for {
			kind, message, err := connection.ReadMessage()
			if err != nil || connection.WriteMessage(kind, message) != nil {
				return
			}
		}
	}
	if err := http.ListenAndServe("127.0.0.1:"+os.Args[1], http.HandlerFunc(handler)); err != nil {
		panic(err)
	}
}
