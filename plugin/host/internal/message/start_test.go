package message

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// full is an assignment with everything that a plugin gets to know.
func full() job.Assignment {
	return job.Assignment{Claimed: job.Claimed{
		Lease: job.Lease{JobID: job.ID{1, 2, 3}, Fence: 7}, Type: "MAIL", Tenant: "tenänt", Payload: []byte(`{"x":1}`), Checkpoint: []byte(`"c"`),
		Attempt: 2, MaxAttempts: 5, Timeout: time.Minute, CreatedAt: time.Date(2026, 2, 20, 1, 2, 3, 456_000_000, time.UTC),
		Trace: job.Trace{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", State: "vendor=blue", Baggage: "b=1"},
		Predecessors: []job.Predecessor{
			{Name: "first", ID: job.ID{4}, Succeeded: true, Result: []byte(`1`)}, {Name: "second", ID: job.ID{5}, Omitted: true},
		},
	}}
}

func TestAStartSaysWhatTheAssignmentDoes(t *testing.T) {
	now := time.Now()
	a, q := full(), Queue{}
	q.Start(1<<63, &a, now.Add(time.Second))
	start := sent(t, &q, now)[0].GetStarts()[0]
	require.True(t, proto.Equal(&handlerv1.Start{
		Handle: 1 << 63, JobId: "01020300-0000-0000-0000-000000000000", JobType: "MAIL", Tenant: "tenänt", Payload: []byte(`{"x":1}`),
		Attempt: 2, MaxAttempts: 5, Fence: 7, TimeoutMs: 60_000, LeaseMs: 1000, Checkpoint: []byte(`"c"`),
		Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", Tracestate: "vendor=blue", Baggage: "b=1",
		CreatedAt: "2026-02-20T01:02:03.456Z",
		Predecessors: []*handlerv1.Predecessor{
			{Name: "first", JobId: "04000000-0000-0000-0000-000000000000", Succeeded: true, Result: []byte(`1`)},
			{Name: "second", JobId: "05000000-0000-0000-0000-000000000000", Omitted: true},
		},
	}, start), "%v", start)
	fields := start.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		require.True(t, start.ProtoReflect().Has(fields.Get(i)), "a field that the protocol has gained is not sent: %s", fields.Get(i).Name())
	}
}

func TestStartsThatAreSentTogetherKeepTheirOwnTimes(t *testing.T) {
	a, q, now := full(), Queue{}, time.Now()
	for _, second := range []int{1, 1, 2, 1} {
		a.CreatedAt = time.Date(2026, 2, 20, 1, 2, second, 0, time.FixedZone("", 3600))
		q.Start(1, &a, now)
	}
	a.CreatedAt = time.Time{}
	q.Start(1, &a, now)
	q.Start(1, &a, now)
	var created []string
	for _, start := range sent(t, &q, now)[0].GetStarts() {
		created = append(created, start.GetCreatedAt())
	}
	require.Equal(t, []string{
		"2026-02-20T00:02:01Z", "2026-02-20T00:02:01Z", "2026-02-20T00:02:02Z", "2026-02-20T00:02:01Z", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z",
	}, created)
}

func TestAQueueIsFilledAgain(t *testing.T) {
	now := time.Now()
	a, other, q := full(), full(), Queue{}
	other.Type, other.Payload = "OTHER", []byte(strings.Repeat("p", 2*messageBytes))
	for range 3 {
		q.Start(1, &a, now)
		q.Start(2, &other, now)
		q.Cancel(1, job.CancelShutdown)
		q.Extend(1, now.Add(time.Minute))
		q.Drain()
		first := q.Messages(now)
		var kept []Request
		for request := range first {
			kept = append(kept, slices.Clone(request))
		}
		require.Equal(t, kept, slices.Collect(first), "a message outlives the next one")
		q = q.Emptied()
		require.Empty(t, sent(t, &q, now))
	}
	other.Type = strings.Repeat("T", 2*messageBytes)
	q.Start(1, &other, now)
	q = q.Emptied()
	require.Zero(t, cap(q.starts.texts), "memory that is not needed usually is not kept")
}

func TestStartBytesIsAnUpperBound(t *testing.T) {
	long := strings.Repeat("ä", 100)
	a := job.Assignment{Claimed: job.Claimed{
		Lease: job.Lease{Fence: -1}, Type: long, Tenant: long + "\xff", Payload: []byte(long), Checkpoint: []byte(long),
		Attempt: 1 << 40, MaxAttempts: -1, Timeout: time.Nanosecond,
		Trace: job.Trace{Parent: long, State: "\xff\xfe", Baggage: long + "\xff"}, CreatedAt: time.Now(),
		Predecessors: slices.Repeat([]job.Predecessor{{Name: long + "\xff", Succeeded: true, Omitted: true, Result: []byte(long)}}, 100),
	}}
	now, q := time.Now(), Queue{}
	q.Start(1<<63, &a, now.Add(1<<62))
	for request := range q.Messages(now) {
		require.LessOrEqual(t, len(request), StartBytes(&a))
	}
	start := sent(t, &q, now)[0].GetStarts()[0]
	require.Equal(t, long+"?", start.GetTenant(), "text that is not UTF-8 is mended")
	require.Empty(t, start.GetTracestate())
	require.EqualValues(t, 1, start.GetTimeoutMs())
	require.EqualValues(t, -1, start.GetFence())
	require.EqualValues(t, 1<<32-1, start.GetAttempt())
	require.Zero(t, start.GetMaxAttempts())
}
