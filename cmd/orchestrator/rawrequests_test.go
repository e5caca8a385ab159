package main

import (
	"bufio"
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/config"
)

// listening serves the API with nothing behind it, and returns its address.
func listening(t *testing.T) string {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	listener, err := listen(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	server := newServer(config.Defaults().Server, api.New(api.Config{
		Jobs: pingable{}, Log: log, Version: "test",
		MaxBodyBytes: api.DefaultMaxBodyBytes, MaxBatchBytes: api.DefaultMaxBatchBytes, RequestTimeout: api.DefaultRequestTimeout,
	}), log)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		require.NoError(t, server.Close())
		require.ErrorIs(t, <-served, http.ErrServerClosed)
		// net/http gives a client half a second to read such an answer.
		require.Eventually(t, func() bool {
			stacks := make([]byte, 1<<20)
			return !bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("net/http.(*conn).serve"))
		}, longWait, 20*time.Millisecond)
	})
	return listener.Addr().String()
}

// reply is an answer as it came over the connection.
type reply struct {
	status     int
	kind, body string
	closes     bool
}

// said is what the server answers to a text, up to the end of the connection.
func said(t *testing.T, address, text string) (replies []reply) {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	require.NoError(t, conn.SetDeadline(time.Now().Add(longWait)))
	_, err = io.WriteString(conn, text)
	require.NoError(t, err)
	for input := bufio.NewReader(conn); ; {
		if _, err := input.Peek(1); err != nil {
			require.ErrorIs(t, err, io.EOF, "the server does not close the connection")
			return replies
		}
		answer, err := http.ReadResponse(input, nil)
		require.NoError(t, err)
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		replies = append(replies, reply{answer.StatusCode, answer.Header.Get("Content-Type"), string(body), answer.Close})
	}
}

// The table in docs/reference/api.md says what is answered in plain text.
func TestMalformedRequestsAreAnsweredAsTheDocumentSays(t *testing.T) {
	address := listening(t)
	const host = "Host: localhost\r\n"
	raw := map[string][]string{
		"an invalid request line":            {"GET\r\n\r\n", "GET /healthz\r\n\r\n", "G@T /healthz HTTP/1.1\r\n" + host + "\r\n"},
		"a URL with a broken escape (`%zz`)": {"GET /%zz HTTP/1.1\r\n" + host + "\r\n"},
		"no `Host`, more than one, or an invalid one": {
			"GET /healthz HTTP/1.1\r\n\r\n", "GET /healthz HTTP/1.1\r\n" + host + host + "\r\n", "GET /healthz HTTP/1.1\r\nHost: a b\r\n\r\n",
		},
		"a control character in a header": {"GET /healthz HTTP/1.1\r\n" + host + "X-A: \x01\r\n\r\n"},
		"an invalid header name":          {"GET /healthz HTTP/1.1\r\n" + host + "X A: b\r\n\r\n", "GET /healthz HTTP/1.1\r\n" + host + ": b\r\n\r\n"},
		"two different `Content-Length`, or one that is not a number": {
			"POST /jobs HTTP/1.1\r\n" + host + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}", "POST /jobs HTTP/1.1\r\n" + host + "Content-Length: x\r\n\r\n{}",
		},
		"an `Expect` other than `100-continue`": {"POST /jobs HTTP/1.1\r\n" + host + "Expect: 200-ok\r\nContent-Length: 2\r\n\r\n{}"},
		"a header of more than eight times `server.max_header_bytes`": {
			"GET /healthz HTTP/1.1\r\n" + host + "X-A: " + strings.Repeat("x", headerSlack*config.Defaults().Server.MaxHeaderBytes+8<<10) + "\r\n\r\n",
		},
		"a `Transfer-Encoding` other than `chunked`": {"POST /jobs HTTP/1.1\r\n" + host + "Transfer-Encoding: gzip\r\n\r\n", "POST /jobs HTTP/1.1\r\n" + host + "Transfer-Encoding: gzip, chunked\r\n\r\n"},
		"a version other than HTTP/1.0 and HTTP/1.1": {"GET /healthz HTTP/2.5\r\n" + host + "\r\n", "GET /healthz HTTP/0.9\r\n" + host + "\r\n"},
	}
	document, err := os.ReadFile("../../docs/reference/api.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(document), "get no problem document")
	require.True(t, found)
	rows := regexp.MustCompile(`(?m)^\| (.+?) \| (\d+)(, without a text)? \|$`).FindAllStringSubmatch(table, -1)
	require.Len(t, rows, len(raw))
	for _, row := range rows {
		require.NotEmpty(t, raw[row[1]], "no request for the row: %s", row[1])
		for _, request := range raw[row[1]] {
			answers := said(t, address, request)
			require.Len(t, answers, 1, "%.100q", request)
			want, err := strconv.Atoi(row[2])
			require.NoError(t, err)
			require.Equal(t, want, answers[0].status, "%.100q", request)
			if row[3] != "" {
				require.Empty(t, answers[0].body)
				continue
			}
			require.Equal(t, "text/plain; charset=utf-8", answers[0].kind, "%.100q", request)
			require.Regexp(t, `^\d+ [^\n]*$|^Unsupported transfer encoding$`, answers[0].body, "%.100q", request)
		}
	}
}

// Whatever follows a body whose length can be read in two ways is not taken
// for a request.
func TestNoRequestIsReadAfterABodyOfTwoLengths(t *testing.T) {
	address := listening(t)
	const hidden = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
	for name, request := range map[string]string{
		"Content-Length and chunked": "POST /jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		"the other way round":        "POST /jobs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		"without a route":            "POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"a GET":                      "GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"HTTP/1.0, kept alive":       "POST /jobs HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r",
		"chunked alone":              "POST /jobs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
	} {
		answers := said(t, address, request+hidden)
		require.Len(t, answers, 1, name)
		require.True(t, answers[0].closes, name)
	}
	const plain = "POST /jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}"
	require.Len(t, said(t, address, plain+hidden), 2, "connections are kept otherwise")
}
