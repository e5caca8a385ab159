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

func TestTheQueueIsSentAsOneMessage(t *testing.T) {
	now := time.Now()
	q := Queue{drain: true}
	for handle := range uint64(100) {
		q.starts = append(q.starts, queuedStart{start: &handlerv1.Start{Handle: handle}, until: now.Add(time.Minute)})
	}
	q.starts[7].until = now.Add(-time.Second)
	q.cancels = append(q.cancels, &handlerv1.Cancel{Handle: 3})
	q.Extend(1, now.Add(30*time.Second))
	q.Extend(2, now.Add(30*time.Second-sameExtension/2))
	messages := slices.Collect(q.Messages(now))
	require.Len(t, messages, 1)
	require.Len(t, messages[0].GetStarts(), 100)
	require.EqualValues(t, 60_000, messages[0].GetStarts()[0].GetLeaseMs())
	require.EqualValues(t, 1, messages[0].GetStarts()[7].GetLeaseMs(), "a lease that ran out in the queue is short, not unlimited")
	require.Equal(t, []uint64{1, 2}, messages[0].GetExtension().GetHandles())
	require.EqualValues(t, 29_950, messages[0].GetExtension().GetLeaseMs(), "the earlier end counts for both")
	require.True(t, messages[0].GetDrain())
	require.Empty(t, slices.Collect((&Queue{}).Messages(now)))
}

func TestMessagesAreBoundedAndCancelsComeAfterStarts(t *testing.T) {
	now := time.Now()
	q := Queue{cancels: []*handlerv1.Cancel{{Handle: 1}}}
	for handle := range uint64(10) {
		payload := []byte(strings.Repeat("p", messageBytes/4))
		q.starts = append(q.starts, queuedStart{start: &handlerv1.Start{Handle: handle, Payload: payload}, until: now})
	}
	messages := slices.Collect(q.Messages(now))
	require.Len(t, messages, 4)
	handle := uint64(0)
	for i, message := range messages {
		require.LessOrEqual(t, proto.Size(message), messageBytes)
		require.Equal(t, i == 3, len(message.GetCancels()) > 0)
		for _, start := range message.GetStarts() {
			require.Equal(t, handle, start.GetHandle())
			handle++
		}
	}
	require.EqualValues(t, 10, handle)
}

func TestExtensionsThatEndApartAreSentApart(t *testing.T) {
	now := time.Now()
	q := Queue{}
	q.Extend(1, now.Add(10*time.Second))
	q.Extend(2, now.Add(20*time.Second))
	q.Extend(3, now.Add(-time.Second))
	messages := slices.Collect(q.Messages(now.Add(2 * time.Second)))
	require.Len(t, messages, 2)
	require.EqualValues(t, 8_000, messages[0].GetExtension().GetLeaseMs())
	require.EqualValues(t, 18_000, messages[1].GetExtension().GetLeaseMs())
}

func TestStartBytesIsAnUpperBound(t *testing.T) {
	long := strings.Repeat("ä", 100)
	a := job.Assignment{Claimed: job.Claimed{
		Lease: job.Lease{Fence: -1}, Type: long, Tenant: long + "\xff", Payload: []byte(long), Checkpoint: []byte(long),
		Attempt: 1 << 40, MaxAttempts: -1, Timeout: time.Nanosecond,
		Trace: job.Trace{Parent: long, State: "\xff\xfe"}, CreatedAt: time.Now(),
		Predecessors: slices.Repeat([]job.Predecessor{{Name: long, Succeeded: true, Omitted: true, Result: []byte(long)}}, 100),
	}}
	start := WriteStart(&a)
	start.Handle, start.LeaseMs = 1<<63, 1<<63
	raw, err := proto.Marshal(start)
	require.NoError(t, err, "text that is not UTF-8 is mended")
	require.LessOrEqual(t, len(raw), StartBytes(start))
	require.EqualValues(t, 1, start.GetTimeoutMs())
	require.EqualValues(t, 1<<32-1, start.GetAttempt())
	require.Zero(t, start.GetMaxAttempts())
}
