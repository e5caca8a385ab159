package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// load is what clients do in a turn.
type load struct {
	name    string
	clients int
	// batch is how many jobs a request submits.
	batch int
	// worked says that handlers work the jobs off, which is part of the turn.
	worked bool
}

// loads are those that a build can be compared at.
var loads = []load{
	{name: "submit, 1 client", clients: 1, batch: 1},
	{name: "submit, 64 clients", clients: 64, batch: 1},
	{name: "submit, 256 clients", clients: 256, batch: 1},
	{name: "submit, batches of 500", clients: 4, batch: 500},
	{name: "submit and work off", clients: 4, batch: 500, worked: true},
}

// Submissions are of unserved jobs, unless they are worked off.
const (
	unserved = "UNSERVED"
	served   = "ECHO"
)

// run loads a build for about that long, and returns how many jobs it accepted and, if they are
// worked off, worked.
func (l load) run(ctx context.Context, b *build, turn time.Duration) (jobs int, err error) {
	request, err := l.request(b)
	if err != nil {
		return 0, err
	}
	transport := &http.Transport{MaxIdleConnsPerHost: l.clients}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	var (
		clients  sync.WaitGroup
		accepted atomic.Int64
		failures = make(chan error, l.clients)
		end      = time.Now().Add(turn)
	)
	for range l.clients {
		clients.Go(func() {
			for time.Now().Before(end) {
				if err := send(ctx, client, request); err != nil {
					failures <- err
					return
				}
				accepted.Add(int64(l.batch))
			}
		})
	}
	clients.Wait()
	close(failures)
	if err := <-failures; err != nil {
		return 0, err
	}
	if l.worked {
		err = b.workOff(ctx)
	}
	return int(accepted.Load()), err
}

// call is a request that can be sent many times.
type call struct {
	url, mediaType, password string
	body                     []byte
}

func (l load) request(b *build) (call, error) {
	jobType := unserved
	if l.worked {
		jobType = served
	}
	one, err := json.Marshal(map[string]any{"jobType": jobType, "payload": map[string]string{"text": "hello"}})
	if err != nil {
		return call{}, err
	}
	c := call{url: "http://" + b.Address + "/jobs", mediaType: "application/json", password: b.Password, body: one}
	if l.batch > 1 {
		c.url += "/batch"
		c.mediaType = "application/x-ndjson"
		c.body = bytes.Repeat(append(one, '\n'), l.batch)
	}
	return c, nil
}

func send(ctx context.Context, client *http.Client, c call) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(c.body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", c.mediaType)
	request.SetBasicAuth("admin", c.password)
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err != nil {
		return err
	}
	if answer.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("%s: %.300s", answer.Status, text)
	}
	return nil
}

// workOff waits until all jobs that can run have ended.
func (b *build) workOff(ctx context.Context) error {
	for {
		var open bool
		err := b.database.QueryRow(ctx, "select exists (select from ready where job_type = $1) or exists (select from leases)", served).Scan(&open)
		if err != nil || !open {
			return err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
