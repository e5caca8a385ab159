package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
)

// caller is a client with a connection of its own. It is as lean as it can be,
// since it shares the machine with what it measures.
type caller struct {
	conn net.Conn
	in   *bufio.Reader
	body []byte
}

func call(address string) (*caller, error) {
	conn, err := (&net.Dialer{}).Dial("tcp", address) //nolint:noctx // a lean client
	if err != nil {
		return nil, err
	}
	return &caller{conn: conn, in: bufio.NewReader(conn)}, nil
}

func (c *caller) close() { _ = c.conn.Close() }

// request renders a request that can be sent over and over.
func request(address, method, target, mediaType string, body []byte) []byte {
	text := method + " " + target + " HTTP/1.1\r\nHost: " + address
	if body != nil {
		text += "\r\nContent-Type: " + mediaType + "\r\nContent-Length: " + strconv.Itoa(len(body))
	}
	return append([]byte(text+"\r\n\r\n"), body...)
}

// do sends a request and returns the body of the answer, which is good until
// the next one. Every answer but 2xx is an error.
func (c *caller) do(request []byte) ([]byte, error) {
	if _, err := c.conn.Write(request); err != nil {
		return nil, err
	}
	answer, err := c.head()
	if err != nil {
		return nil, err
	}
	c.body = c.body[:0]
	if answer.chunked {
		err = c.chunks()
	} else {
		err = c.read(answer.length)
	}
	switch {
	case err != nil:
		return nil, err
	case answer.status/100 != 2:
		return nil, fmt.Errorf("answered %d %s: %s", answer.status, http.StatusText(answer.status), c.body)
	}
	return c.body, nil
}

// head is what matters of the header of an answer.
type head struct {
	status, length int
	chunked        bool
}

var (
	lengthField  = []byte("Content-Length: ")
	chunkedField = []byte("Transfer-Encoding: chunked")
)

func (c *caller) head() (found head, err error) {
	line, err := c.line()
	if err != nil {
		return found, err
	}
	if len(line) < len("HTTP/1.1 200") {
		return found, fmt.Errorf("not HTTP: %q", line)
	}
	found.status, err = strconv.Atoi(string(line[9:12]))
	for err == nil {
		line, err = c.line()
		switch {
		case err != nil:
		case len(line) == 0:
			return found, nil
		case bytes.HasPrefix(line, lengthField):
			found.length, err = strconv.Atoi(string(line[len(lengthField):]))
		case bytes.Equal(line, chunkedField):
			found.chunked = true
		}
	}
	return found, err
}

func (c *caller) line() ([]byte, error) {
	line, err := c.in.ReadSlice('\n')
	return bytes.TrimRight(line, "\r\n"), err
}

// read appends so many bytes to the body.
func (c *caller) read(n int) error {
	have := len(c.body)
	c.body = slices.Grow(c.body, n)[:have+n]
	_, err := io.ReadFull(c.in, c.body[have:])
	return err
}

// chunks reads a body that comes in pieces, each with its length before it.
func (c *caller) chunks() error {
	for {
		line, err := c.line()
		if err != nil {
			return err
		}
		n, err := strconv.ParseUint(string(line), 16, 31)
		if err != nil {
			return err
		}
		if err := c.read(int(n)); err != nil {
			return err
		}
		if _, err := c.line(); err != nil || n == 0 {
			return err
		}
	}
}

var idMember = []byte(`"jobId":"`)

// jobIDLength is that of a UUID in its canonical form.
const jobIDLength = 36

// jobID finds the id in the answer to a submission.
func jobID(answer []byte) string {
	at := bytes.Index(answer, idMember)
	if at < 0 || len(answer) < at+len(idMember)+jobIDLength {
		return ""
	}
	return string(answer[at+len(idMember):][:jobIDLength])
}
