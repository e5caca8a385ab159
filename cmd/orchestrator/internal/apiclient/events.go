package apiclient

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// eventsSilence is how long a stream of events may be silent: the server says something
	// every 15 s.
	eventsSilence = 45 * time.Second
	// maxEventLine bounds a line of the stream.
	maxEventLine = 1 << 20
	// reconnectPause is the pause before a stream is opened again.
	reconnectPause = time.Second
)

// Message is one message of a stream of events.
type Message struct {
	ID, Event string
	Data      Answer
}

// Follow sends the query to the stream of events, and calls see with each message, until the
// context ends. When the stream breaks, it goes on behind the last message. It returns an
// error if the first connection fails, or a later one is refused for good.
func (c *Client) Follow(ctx context.Context, query url.Values, see func(Message) error) error {
	for connected := false; ; {
		answer, err := c.stream(ctx, query)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && (!connected || !transient(err)):
			return err
		case err == nil:
			connected = true
			if err := read(answer, query, see); err != nil {
				return err
			}
		}
		if err := pause(ctx, reconnectPause); err != nil {
			return err
		}
	}
}

// stream opens the stream. Its body fails if the server is silent for too long.
func (c *Client) stream(ctx context.Context, query url.Values) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancel(ctx)
	silent := time.AfterFunc(eventsSilence, cancel)
	answer, err := c.send(ctx, http.MethodGet, "/events", query, "text/event-stream", nil) //nolint:bodyclose // watchedBody closes it
	if err != nil {
		silent.Stop()
		cancel()
		return nil, err
	}
	return &watchedBody{ReadCloser: answer.Body, silent: silent, cancel: cancel}, nil
}

type watchedBody struct {
	io.ReadCloser
	silent *time.Timer
	cancel context.CancelFunc
}

func (b *watchedBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	b.silent.Reset(eventsSilence)
	return n, err
}

func (b *watchedBody) Close() error {
	b.silent.Stop()
	b.cancel()
	return b.ReadCloser.Close()
}

// read reads messages until the stream ends, and keeps the place in the query. Only errors
// of see are errors.
func read(body io.ReadCloser, query url.Values, see func(Message) error) error {
	defer func() { _ = body.Close() }()
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxEventLine)
	var m Message
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case lines.Text() != "" && name == "id":
			m.ID = value
		case name == "event":
			m.Event = value
		case name == "data":
			m.Data = append(m.Data, value...)
		case lines.Text() == "":
			if len(m.Data) > 0 {
				if err := see(m); err != nil {
					return err
				}
			}
			if m.ID != "" {
				query.Set("lastEventId", m.ID)
			}
			m = Message{}
		}
	}
	return nil // the next stream goes on where this one broke
}
