package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"strconv"
)

// caller is a client with one connection. It is lean, since it shares the machine with
// what it measures: requests are rendered once, and answers share a buffer.
type caller struct {
	conn net.Conn
	in   *bufio.Reader
	body bytes.Buffer
}

func call(address string) (*caller, error) {
	conn, err := (&net.Dialer{}).Dial("tcp", address) //nolint:noctx // a lean client
	if err != nil {
		return nil, err
	}
	return &caller{conn: conn, in: bufio.NewReader(conn)}, nil
}

func (c *caller) close() { _ = c.conn.Close() }

// request renders a request that can be sent any number of times.
func request(address, method, target, mediaType string, body []byte) []byte {
	text := method + " " + target + " HTTP/1.1\r\nHost: " + address
	if body != nil {
		text += "\r\nContent-Type: " + mediaType + "\r\nContent-Length: " + strconv.Itoa(len(body))
	}
	return append([]byte(text+"\r\n\r\n"), body...)
}

// do sends a request and returns the body of the answer, which is valid until the next
// call. Every status but 2xx is an error.
func (c *caller) do(request []byte) ([]byte, error) {
	if _, err := c.conn.Write(request); err != nil {
		return nil, err
	}
	answer, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return nil, err
	}
	c.body.Reset()
	_, err = c.body.ReadFrom(answer.Body)
	_ = answer.Body.Close()
	switch {
	case err != nil:
		return nil, err
	case answer.StatusCode/100 != 2:
		return nil, fmt.Errorf("answered %s: %s", answer.Status, c.body.Bytes())
	}
	return c.body.Bytes(), nil
}

var idMember = []byte(`"jobId":"`)

// jobIDLength is the length of a UUID in its canonical form.
const jobIDLength = 36

// jobID returns the id in the answer to a submission.
func jobID(answer []byte) string {
	at := bytes.Index(answer, idMember)
	if at < 0 || len(answer) < at+len(idMember)+jobIDLength {
		return ""
	}
	return string(answer[at+len(idMember):][:jobIDLength])
}
