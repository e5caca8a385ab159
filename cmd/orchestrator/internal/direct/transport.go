// Package direct lets a client of the HTTP API work straight on the database:
// the API's own handler is called within the process, on a ledger without a
// worker. What it validates and answers is therefore the same.
package direct

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"
)

// Transport carries requests to a handler of this process. Bodies are
// streamed both ways at once.
type Transport struct{ Handler http.Handler }

// errAborted stands for a connection that the server would have cut.
var errAborted = errors.New("the answer was broken off")

// RoundTrip returns when the handler has written its header.
func (t Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(request.Context())
	atServer, stopReading := asReceived(ctx, request)
	reader, writer := io.Pipe()
	answer := &answer{header: http.Header{}, body: writer, stopReading: stopReading, begun: make(chan struct{})}
	context.AfterFunc(ctx, func() {
		stopReading(context.Cause(ctx))
		_ = writer.CloseWithError(context.Cause(ctx))
	})
	go func() {
		defer cancel()
		err := errAborted
		defer func() { answer.end(err) }()
		err = serve(t.Handler, answer, atServer)
	}()
	select {
	case <-answer.begun:
	case <-request.Context().Done():
		return nil, request.Context().Err()
	}
	if answer.err != nil {
		return nil, answer.err
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", answer.status, http.StatusText(answer.status)), StatusCode: answer.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: answer.sent, Request: request, ContentLength: -1,
		Body: &answerBody{PipeReader: reader, left: cancel},
	}, nil
}

// asReceived is the request as a server would have it, and a function that
// ends the reading of its body.
func asReceived(ctx context.Context, request *http.Request) (received *http.Request, stopReading func(error)) {
	received = request.Clone(ctx)
	received.RemoteAddr = "127.0.0.1:0"
	received.RequestURI = request.URL.RequestURI()
	received.Host = request.URL.Host
	if request.Body == nil || request.Body == http.NoBody {
		received.Body = http.NoBody
		return received, func(error) {}
	}
	// A handler that stops reading must not wait for the source: that may be
	// a terminal.
	reader, writer := io.Pipe()
	go func() {
		_, err := io.Copy(writer, request.Body)
		_ = request.Body.Close()
		_ = writer.CloseWithError(err)
	}()
	received.Body = reader
	return received, func(err error) { _ = writer.CloseWithError(err) }
}

func serve(handler http.Handler, w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = errAborted
		}
	}()
	handler.ServeHTTP(w, r)
	return nil
}

// answer is what the handler writes to.
type answer struct {
	header http.Header
	body   *io.PipeWriter
	// stopReading ends the reading of the request.
	stopReading func(error)

	once  sync.Once
	begun chan struct{}
	// What follows does not change once begun is closed.
	status int
	// sent is the header as it was when the answer began.
	sent http.Header
	err  error
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	if status < http.StatusOK {
		return
	}
	a.once.Do(func() {
		a.status, a.sent = status, a.header.Clone()
		close(a.begun)
	})
}

func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}

// Flush begins the answer; nothing is held back later.
func (a *answer) Flush() { a.WriteHeader(http.StatusOK) }

// SetReadDeadline ends the reading of the request when the time is past. Those
// to come are for clients that dribble, and there are none here.
func (a *answer) SetReadDeadline(deadline time.Time) error {
	if !deadline.IsZero() && !deadline.After(time.Now()) {
		a.stopReading(os.ErrDeadlineExceeded)
	}
	return nil
}

// SetWriteDeadline is for http.ResponseController.
func (a *answer) SetWriteDeadline(time.Time) error { return nil }

// EnableFullDuplex is for http.ResponseController.
func (a *answer) EnableFullDuplex() error { return nil }

func (a *answer) end(err error) {
	a.once.Do(func() {
		a.status, a.sent, a.err = http.StatusOK, a.header.Clone(), err
		close(a.begun)
	})
	_ = a.body.CloseWithError(err)
}

// answerBody ends the request when the client has read enough.
type answerBody struct {
	*io.PipeReader
	left func()
}

func (b *answerBody) Close() error {
	b.left()
	return b.PipeReader.Close()
}
