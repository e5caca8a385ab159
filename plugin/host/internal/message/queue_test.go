package message

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// sent are the messages of the queue, as a plugin reads them.
func sent(t *testing.T, q *Queue, now time.Time) (messages []*handlerv1.WorkRequest) {
	t.Helper()
	for request := range q.Messages(now) {
		data, err := NewCodec().Marshal(request)
		require.NoError(t, err)
		read := new(handlerv1.WorkRequest)
		require.NoError(t, proto.Unmarshal(data.Materialize(), read))
		require.Empty(t, read.ProtoReflect().GetUnknown())
		messages = append(messages, read)
	}
	return messages
}

func TestTheQueueIsSentAsOneMessage(t *testing.T) {
	now := time.Now()
	q := Queue{drain: true}
	for handle := range uint64(100) {
		q.Start(handle, &job.Assignment{}, now.Add(time.Minute))
	}
	q.starts.all[7].until = now.Add(-time.Second)
	q.cancels = append(q.cancels, &handlerv1.Cancel{Handle: 3})
	q.Extend(1, now.Add(30*time.Second))
	q.Extend(2, now.Add(30*time.Second-sameExtension/2))
	messages := sent(t, &q, now)
	require.Len(t, messages, 1)
	require.Len(t, messages[0].GetStarts(), 100)
	require.EqualValues(t, 60_000, messages[0].GetStarts()[0].GetLeaseMs())
	require.EqualValues(t, 1, messages[0].GetStarts()[7].GetLeaseMs(), "a lease that ran out in the queue is short, not unlimited")
	require.Equal(t, []uint64{1, 2}, messages[0].GetExtension().GetHandles())
	require.EqualValues(t, 29_950, messages[0].GetExtension().GetLeaseMs(), "the earlier end counts for both")
	require.True(t, messages[0].GetDrain())
	require.Empty(t, sent(t, &Queue{}, now))
}

func TestMessagesAreBoundedAndCancelsComeAfterStarts(t *testing.T) {
	now := time.Now()
	q := Queue{cancels: []*handlerv1.Cancel{{Handle: 1}}}
	for handle := range uint64(10) {
		payload := []byte(strings.Repeat("p", messageBytes/4))
		q.Start(handle, &job.Assignment{Claimed: job.Claimed{Payload: payload}}, now)
	}
	messages := sent(t, &q, now)
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
	messages := sent(t, &q, now.Add(2*time.Second))
	require.Len(t, messages, 2)
	require.EqualValues(t, 8_000, messages[0].GetExtension().GetLeaseMs())
	require.EqualValues(t, 18_000, messages[1].GetExtension().GetLeaseMs())
}
