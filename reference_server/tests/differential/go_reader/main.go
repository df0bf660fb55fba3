// Reads messages from standard input, each behind its length in four octets, highest first; writes
// for each what net/http makes of it: "accept", "need-more" or "reject" and why.
package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

// wire remembers whether more was wanted than there is.
type wire struct {
	message *bytes.Reader
	wanted  bool
}

func (w *wire) Read(into []byte) (int, error) {
	n, err := w.message.Read(into)
	w.wanted = w.wanted || err == io.EOF
	return n, err
}

func verdict(message []byte) string {
	from := &wire{message: bytes.NewReader(message)}
	request, err := http.ReadRequest(bufio.NewReader(from))
	if err == nil {
		_, err = io.Copy(io.Discard, request.Body)
	}
	if err == nil {
		return "accept"
	}
	if from.wanted {
		return "need-more"
	}
	return "reject " + strings.ReplaceAll(err.Error(), "\n", " ")
}

func main() {
	in := bufio.NewReader(os.Stdin)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for {
		var size uint32
		if binary.Read(in, binary.BigEndian, &size) != nil {
			return
		}
		message := make([]byte, size)
		if _, err := io.ReadFull(in, message); err != nil {
			os.Exit(1)
		}
		fmt.Fprintln(out, verdict(message))
	}
}
