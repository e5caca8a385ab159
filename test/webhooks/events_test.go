package webhooks

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
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

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/test/rig"
)

// client follows events, and begins again wherever somebody answers.
type client struct {
	ids  []int64
	jobs []string
	gaps int
	// last is sent when it begins again.
	last      string
	connected int
	reached   atomic.Int64
}

// follow reads streams of the orchestrators in turn until the context ends.
func (c *client) follow(ctx context.Context, from ...rig.Client) {
	for i := 0; ctx.Err() == nil; i++ {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+from[i%len(from)].Address+"/events", nil)
		if err != nil {
			return
		}
		request.SetBasicAuth("admin", from[i%len(from)].Password)
		request.Header.Set("Last-Event-ID", c.last)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			time.Sleep(glance)
			continue
		}
		if answer.StatusCode == http.StatusOK {
			c.connected++
			c.read(bufio.NewScanner(answer.Body))
		}
		_ = answer.Body.Close()
	}
}

// read reads messages until the stream breaks. A message that is not complete does not count.
func (c *client) read(lines *bufio.Scanner) {
	var id, event, data string
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch {
		case name == "id":
			id = value
		case name == "event":
			event = value
		case name == "data":
			data = value
		case lines.Text() == "":
			if event == "gap" {
				c.gaps++
			} else if data != "" {
				n, _ := strconv.ParseInt(id, 10, 64)
				var of v1.Event
				_ = json.Unmarshal([]byte(data), &of)
				c.ids, c.jobs = append(c.ids, n), append(c.jobs, of.JobID.String())
				c.reached.Store(n)
			}
			c.last, id, event, data = id, "", "", ""
		}
	}
}

// kept are settings under which events are recorded.
var kept = []string{"events.keep=1h", "worker.concurrency=50"}

func TestAClientThatComesBackMissesNothingWhateverIsKilled(t *testing.T) {
	t.Parallel()
	s := newScene(t, 3, kept...)
	var all []rig.Client
	for _, o := range s.orchestrators {
		all = append(all, o.Client)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	clients, ended := make([]*client, 4), make(chan struct{})
	for i := range clients {
		clients[i] = &client{last: "0"}
		go func() {
			defer func() { ended <- struct{}{} }()
			clients[i].follow(ctx, slices.Concat(all[i%3:], all[:i%3])...)
		}()
	}
	submitted := 0
	for kill := range 6 {
		o, before := s.orchestrators[kill%3], clients[0].reached.Load()
		for range 3 {
			batch := make([]rig.Submission, 100)
			for i := range batch {
				batch[i] = rig.Submission{JobType: "FAIL_JOB", MaxAttempts: 1}
			}
			_, err := o.SubmitBatch(t.Context(), batch)
			require.NoError(t, err)
			submitted += len(batch)
		}
		require.Eventually(t, func() bool { return clients[0].reached.Load() >= before+100 }, patience, time.Millisecond)
		require.NoError(t, o.Kill())
		start(t, o)
	}
	s.await(t, `select count(*) from jobs where finished_at is null`)
	s.await(t, `select count(*) from ends`)
	for _, c := range clients {
		require.Eventually(t, func() bool { return c.reached.Load() == int64(submitted) }, patience, glance)
	}
	stop()
	for range clients {
		<-ended
	}
	want := make([]int64, submitted)
	for i := range want {
		want[i] = int64(i) + 1
	}
	for _, c := range clients {
		require.Equal(t, want, c.ids, "each once, in order")
		require.Zero(t, c.gaps)
		require.Greater(t, c.connected, 1)
		once := make(map[string]bool, submitted)
		for _, id := range c.jobs {
			once[id] = true
		}
		require.Len(t, once, submitted, "each job has one event")
	}
	t.Logf("%d events; clients connected %d, %d, %d and %d times", submitted,
		clients[0].connected, clients[1].connected, clients[2].connected, clients[3].connected)
	s.shutDown(t)
}

// Clients that accept nothing get 16 MB each. Others get all of it meanwhile, and the
// process does not grow by it.
func TestClientsThatReadNothingHarmNobody(t *testing.T) {
	t.Parallel()
	const events, stuck, most = 8000, 20, 128 << 20
	s := newScene(t, 1, kept...)
	o := s.orchestrators[0]
	record := func(first, last int) {
		s.exec(t, `insert into events (id, at, job_id, job_type, tenant, tags, state)
			select n, now(), gen_random_uuid(), 'MAIL', 'default', (select array_agg(repeat('x', 99)) from generate_series(1, 20)), 'succeeded'
			from generate_series($1::integer, $2::integer) n`, first, last)
		s.exec(t, `update last_event set id = $1`, last)
	}
	record(1, events)
	before := memory(t, o.PID())
	ctx, stop := context.WithCancel(t.Context())
	reader, ended := &client{last: "0"}, make(chan struct{})
	go func() {
		defer close(ended)
		reader.follow(ctx, o.Client)
	}()
	reads := func(last int64) {
		require.Eventually(t, func() bool { return reader.reached.Load() == last }, patience, time.Millisecond)
	}
	reads(events)
	for range stuck {
		dialer := &net.Dialer{}
		connection, err := dialer.DialContext(t.Context(), "tcp", o.Address)
		require.NoError(t, err)
		t.Cleanup(func() { _ = connection.Close() })
		require.NoError(t, connection.(*net.TCPConn).SetReadBuffer(4096))
		_, err = fmt.Fprintf(connection, "GET /events?lastEventId=0 HTTP/1.1\r\nHost: %s\r\nAuthorization: Basic %s\r\n\r\n",
			o.Address, base64.StdEncoding.EncodeToString([]byte("admin:"+o.Password)))
		require.NoError(t, err)
	}
	cutOff := func() int { return metric(t, o, "holdfast_events_cut_off_total") }
	require.Eventually(t, func() bool { return metric(t, o, "holdfast_events_streams")+cutOff() > stuck }, patience, glance)
	record(events+1, events+1)
	reads(events + 1)
	// They are cut off after 20 seconds, most of which a busy machine may need for this.
	require.Less(t, cutOff(), stuck, "nobody waited for those who read nothing")
	grown := memory(t, o.PID()) - before
	t.Logf("%d clients that read nothing: %d MiB more", stuck, grown>>20)
	require.Less(t, grown, most)
	require.Eventually(t, func() bool { return metric(t, o, "holdfast_events_streams") == 1 }, patience, glance, "they are cut off")
	require.Equal(t, stuck, cutOff())
	stop()
	<-ended
	s.shutDown(t)
}

// memory is the resident memory of a process, in bytes.
func memory(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	_, after, _ := strings.Cut(string(text), "VmRSS:")
	kib, err := strconv.Atoi(strings.Fields(after)[0])
	require.NoError(t, err)
	return kib << 10
}

// metric returns the value of a metric without labels; 0 if there is none.
func metric(t *testing.T, o *rig.Orchestrator, name string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+o.Address+"/metrics", nil)
	require.NoError(t, err)
	request.SetBasicAuth("admin", o.Password)
	request.Header.Set("Accept", "text/plain")
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if series, value, _ := strings.Cut(lines.Text(), " "); series == name || strings.HasPrefix(series, name+"{") {
			n, err := strconv.ParseFloat(value, 64)
			require.NoError(t, err)
			return int(n)
		}
	}
	return 0
}
