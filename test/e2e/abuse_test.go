package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/rig"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

// flat is how much the orchestrator's memory may grow: far less than what was sent to
// it. With the race detector, a program needs several times as much memory.
const flat = 200 << 20

func TestHugeRequestsAreRefusedInLittleMemory(t *testing.T) {
	o := orchestrator(t, pgtest.URL(t), plugin(0, "builtin", "handlers")...)
	rigtest.Start(t, o)
	before := resident(t, o)

	t.Run("a body that declares a gigabyte", func(t *testing.T) {
		require.Equal(t, http.StatusRequestEntityTooLarge, answerTo(t, o,
			"POST /jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1073741824\r\n\r\n", nil))
	})
	t.Run("a gigabyte in chunks", func(t *testing.T) {
		require.Equal(t, http.StatusRequestEntityTooLarge, answerTo(t, o,
			"POST /jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
			func(conn io.Writer) error {
				chunk := "10000\r\n" + strings.Repeat(" ", 0x10000) + "\r\n"
				for range (1 << 30) / 0x10000 {
					if _, err := io.WriteString(conn, chunk); err != nil {
						return err
					}
				}
				return nil
			}))
	})
	t.Run("a hundred thousand brackets", func(t *testing.T) {
		body := `{"jobType":"SLEEP_JOB","payload":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + "}"
		require.Equal(t, http.StatusBadRequest, answerTo(t, o, fmt.Sprintf(
			"POST /jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body), nil))
	})
	t.Run("ten thousand headers", func(t *testing.T) {
		var headers strings.Builder
		for i := range 10_000 {
			fmt.Fprintf(&headers, "X-%d: 1\r\n", i)
		}
		require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, answerTo(t, o,
			"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"+headers.String()+"\r\n", nil))
	})
	require.Less(t, resident(t, o)-before, flat)
	healthy(t, o)
}

// Half of the slow clients never finish their header, half never their body.
func TestSlowClientsDelayNobodyElse(t *testing.T) {
	const slow = 1000
	o := orchestrator(t, pgtest.URL(t), append(plugin(0, "builtin", "handlers"),
		"server.read_header_timeout=3s", "server.read_timeout=3s")...)
	rigtest.Start(t, o)
	before := resident(t, o)
	alone := healthy(t, o)

	dribble, stop := context.WithCancel(t.Context())
	defer stop()
	begun := make(chan struct{}, slow)
	var dribblers errgroup.Group
	for i := range slow {
		dribblers.Go(func() error { return dribbleTo(dribble, o.Address, i%2 == 0, begun) })
	}
	for range slow {
		select {
		case <-begun:
		case <-time.After(patience):
			require.FailNow(t, "not all slow clients could begin")
		}
	}
	besides := healthy(t, o)
	require.Less(t, resident(t, o)-before, flat)
	// The server must end each connection, not the test.
	require.NoError(t, dribblers.Wait())
	t.Logf("median of a healthy request: %s alone, %s beside %d slow clients", alone, besides, slow)
	healthy(t, o)
}

// Each client sends a batch of legal size, except for its end.
func TestUnfinishedBodiesAreRefusedInLittleMemory(t *testing.T) {
	const clients, each = 100, 8 << 20
	o := orchestrator(t, pgtest.URL(t), append(plugin(0, "builtin", "handlers"), "server.max_receiving_bytes=33554432")...)
	rigtest.Start(t, o)
	before := resident(t, o)
	one := `{"jobType":"FAIL_JOB","payload":"` + strings.Repeat("x", 100_000) + `"},`
	var refused atomic.Int64
	var all errgroup.Group
	for range clients {
		all.Go(func() error {
			conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", o.Address)
			if err != nil {
				return err
			}
			t.Cleanup(func() { _ = conn.Close() })
			_, err = fmt.Fprintf(conn, "POST /jobs/batch HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n[", each)
			for sent := 0; err == nil && sent+len(one) < each; sent += len(one) {
				_, err = io.WriteString(conn, one)
			}
			// After its answer, the server closes the connection, so a client cannot
			// send more.
			go func() {
				answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					return
				}
				defer func() { _ = answer.Body.Close() }()
				if answer.StatusCode == http.StatusServiceUnavailable {
					refused.Add(1)
				}
			}()
			return nil
		})
	}
	require.NoError(t, all.Wait())
	require.Eventually(t, func() bool { return refused.Load() >= clients/2 }, patience, glance)
	// The race detector has shadows of all memory.
	require.Less(t, resident(t, o)-before, clients*each/2)
	healthy(t, o)
}

// answerTo sends a request byte for byte and returns the status of the answer. The
// answer may come before everything is sent.
func answerTo(t *testing.T, o *rig.Orchestrator, head string, body func(io.Writer) error) int {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", o.Address)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		if _, err := io.WriteString(conn, head); err == nil && body != nil {
			_ = body(conn) // the server stops listening at some point
		}
	}()
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	require.Equal(t, "application/problem+json", answer.Header.Get("Content-Type"))
	require.NoError(t, answer.Body.Close())
	_ = conn.Close()
	<-sent
	return answer.StatusCode
}

// dribbleTo sends a request byte by byte until the server cuts it off.
func dribbleTo(ctx context.Context, address string, inHeader bool, begun chan<- struct{}) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	head := "POST /jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n"
	if !inHeader {
		head += "\r\n"
	}
	if _, err := io.WriteString(conn, head); err != nil {
		return err
	}
	begun <- struct{}{}
	cut := make(chan struct{})
	go func() {
		defer close(cut)
		_, _ = io.Copy(io.Discard, conn)
	}()
	bytes := time.NewTicker(200 * time.Millisecond)
	defer bytes.Stop()
	for {
		select {
		case <-cut:
			return nil
		case <-ctx.Done():
			return errors.New("was not cut off")
		case <-bytes.C:
			_, _ = io.WriteString(conn, "x")
		}
	}
}

// healthy submits jobs one after another. All of them must be accepted. It returns the
// median time of a submission.
func healthy(t *testing.T, o *rig.Orchestrator) time.Duration {
	t.Helper()
	var took []time.Duration
	for range 50 {
		sent := time.Now()
		rigtest.Submit(t, o, rig.Submission{JobType: "FAIL_JOB", Payload: map[string]any{}, MaxAttempts: 1})
		took = append(took, time.Since(sent))
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// resident is how much memory the orchestrator's process uses, in bytes.
func resident(t *testing.T, o *rig.Orchestrator) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", o.PID()))
	require.NoError(t, err)
	for line := range strings.Lines(string(status)) {
		if rest, found := strings.CutPrefix(line, "VmRSS:"); found {
			kilobytes, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")))
			require.NoError(t, err)
			return kilobytes << 10
		}
	}
	require.FailNow(t, "the kernel does not say how much memory is in use")
	return 0
}
