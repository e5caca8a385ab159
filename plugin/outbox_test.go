package plugin

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/plugin/internal/protocol"
)

func attemptNo(handle uint64) *attempt { return &attempt{start: &handlerv1.Start{Handle: handle}} }

// drained is everything in the outbox, message by message.
func drained(t *testing.T, o *outbox) []*handlerv1.WorkResponse {
	t.Helper()
	o.close()
	var messages []*handlerv1.WorkResponse
	require.NoError(t, o.deliver(func(m *handlerv1.WorkResponse) error {
		messages = append(messages, m)
		return nil
	}))
	return messages
}

func TestWhatGathersDuringASendBecomesOneMessage(t *testing.T) {
	o := newOutbox()
	sending, goOn := make(chan *handlerv1.WorkResponse), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- o.deliver(func(m *handlerv1.WorkResponse) error {
			sending <- m
			<-goOn
			return nil
		})
	}()
	o.outcome(attemptNo(1), succeeded(""))
	require.Len(t, (<-sending).GetOutcomes(), 1)
	for handle := range uint64(100) {
		a := attemptNo(handle + 2)
		require.NoError(t, o.progress(a, []byte("1")))
		o.log(a, &handlerv1.Log{Handle: handle + 2})
		o.outcome(a, succeeded(""))
	}
	goOn <- struct{}{}
	m := <-sending
	require.Len(t, m.GetOutcomes(), 100)
	require.Len(t, m.GetProgress(), 100)
	require.Len(t, m.GetLogs(), 100)
	goOn <- struct{}{}
	o.close()
	require.NoError(t, <-done)
}

func TestEachAttemptKeepsItsOrder(t *testing.T) {
	o := newOutbox()
	var writers sync.WaitGroup
	for handle := range uint64(50) {
		writers.Go(func() {
			a := attemptNo(handle)
			for i := range 200 {
				_ = o.progress(a, fmt.Append(nil, i))
				_ = o.checkpoint(a, fmt.Append(nil, i))
			}
			o.outcome(a, &handlerv1.Outcome{Handle: handle})
			_ = o.progress(a, []byte("too late"))
		})
	}
	received := make(chan []*handlerv1.WorkResponse, 1)
	go func() {
		var messages []*handlerv1.WorkResponse
		_ = o.deliver(func(m *handlerv1.WorkResponse) error {
			messages = append(messages, proto.Clone(m).(*handlerv1.WorkResponse))
			return nil
		})
		received <- messages
	}()
	writers.Wait()
	o.close()
	ended := map[uint64]bool{}
	progress, checkpoints := map[uint64]int{}, map[uint64]int{}
	rises := func(last map[uint64]int, handle uint64, text []byte) {
		var now int
		_, err := fmt.Sscan(string(text), &now)
		require.NoError(t, err)
		require.False(t, ended[handle], "a report after the outcome")
		require.GreaterOrEqual(t, now, last[handle])
		last[handle] = now
	}
	for _, m := range <-received {
		for _, p := range m.GetProgress() {
			rises(progress, p.GetHandle(), p.GetProgress())
		}
		for _, c := range m.GetCheckpoints() {
			rises(checkpoints, c.GetHandle(), c.GetCheckpoint())
		}
		for _, outcome := range m.GetOutcomes() {
			require.False(t, ended[outcome.GetHandle()], "two outcomes")
			ended[outcome.GetHandle()] = true
		}
	}
	require.Len(t, ended, 50)
	for handle := range uint64(50) {
		require.Equal(t, 199, progress[handle], "the last one arrives")
		require.Equal(t, 199, checkpoints[handle])
	}
}

func TestReportsTakeNoRoomWhileNobodyReads(t *testing.T) {
	for _, size := range []int{1, 100 << 10, 2 << 20} {
		o, a := newOutbox(), attemptNo(1)
		for i := range 100 {
			value := []byte(strings.Repeat(fmt.Sprint(i%10), size))
			require.NoError(t, o.progress(a, value))
			require.NoError(t, o.checkpoint(a, value))
		}
		require.Len(t, o.pending.reporting, 1)
		messages := drained(t, o)
		require.LessOrEqual(t, len(messages), 2, "size %d", size)
		for _, m := range messages {
			require.LessOrEqual(t, proto.Size(m), protocol.MaxMessageBytes)
		}
	}
}

func TestNoMessageIsTooLarge(t *testing.T) {
	o := newOutbox()
	large := strings.Repeat("x", maxValue)
	half := []byte(strings.Repeat("x", maxValue/2))
	a := attemptNo(1)
	for handle := range uint64(3) {
		o.outcome(attemptNo(handle), succeeded(large))
		o.outcome(attemptNo(handle), failure(&handlerv1.Failed{Message: large, Stack: large, Code: large}))
		require.NoError(t, o.progress(a, []byte("1")))
		require.NoError(t, o.progress(a, half))
		require.NoError(t, o.checkpoint(a, []byte("1")))
		require.NoError(t, o.checkpoint(a, half))
		require.NoError(t, o.checkpoint(a, []byte(large)))
	}
	for range 20_000 {
		o.outcome(attemptNo(1<<63), failure(&handlerv1.Failed{Code: strings.Repeat("c", maxCode), RetryAfterMs: new(uint64(1 << 63))}))
	}
	for range 3000 {
		o.outcome(attemptNo(1<<63), failure(&handlerv1.Failed{Message: large[:maxMessage]}))
		o.outcome(attemptNo(1<<63), failure(&handlerv1.Failed{Stack: large[:maxStack]}))
	}
	messages := drained(t, o)
	outcomes := 0
	for _, m := range messages {
		require.LessOrEqual(t, proto.Size(m), protocol.MaxMessageBytes)
		outcomes += len(m.GetOutcomes())
	}
	require.Equal(t, 26_006, outcomes)
}

func TestMessagesAreFilled(t *testing.T) {
	o := newOutbox()
	for handle := range uint64(40) {
		o.outcome(attemptNo(handle), succeeded(strings.Repeat("x", fullMessage/10)))
	}
	require.Len(t, drained(t, o), 5)
}

func TestOfLogsThatNobodyReadsTheLastOfEachAttemptAreKept(t *testing.T) {
	o, chatty, quiet := newOutbox(), attemptNo(1), attemptNo(2)
	o.log(quiet, &handlerv1.Log{Handle: 2, Message: "once"})
	for i := range maxLogsOfOne + 234 {
		o.log(chatty, &handlerv1.Log{Handle: 1, Message: fmt.Sprint(i)})
	}
	o.outcome(chatty, succeeded(""))
	o.log(chatty, &handlerv1.Log{Handle: 1, Message: "too late"})
	messages := drained(t, o)
	require.Len(t, messages, 1)
	logs := messages[0].GetLogs()
	require.Len(t, logs, 1+maxLogsOfOne+1+1)
	require.Equal(t, "once", logs[0].GetMessage())
	require.Equal(t, "234", logs[1].GetMessage())
	require.Equal(t, fmt.Sprint(maxLogsOfOne+233), logs[maxLogsOfOne].GetMessage())
	told := logs[len(logs)-1]
	require.Equal(t, "234 log records were dropped", told.GetMessage())
	require.Equal(t, handlerv1.Log_LEVEL_WARN, told.GetLevel())
	require.EqualValues(t, 1, told.GetHandle())
	require.EqualValues(t, 234, told.GetDropped())
	require.Len(t, messages[0].GetOutcomes(), 1, "outcomes are never dropped")
}

func TestAllLogsThatNobodyReadsAreBounded(t *testing.T) {
	o := newOutbox()
	for handle := range uint64(maxLogs + 5) {
		o.log(attemptNo(handle+1), &handlerv1.Log{Handle: handle + 1})
	}
	logs := drained(t, o)[0].GetLogs()
	require.Len(t, logs, maxLogs+5)
	dropped := 0
	for _, record := range logs {
		dropped += int(record.GetDropped())
	}
	require.Equal(t, 5, dropped)
	require.Empty(t, o.logs)
}

func TestALogAfterTheEndBelongsToNoAttempt(t *testing.T) {
	o, a := newOutbox(), attemptNo(1)
	o.outcome(a, succeeded(""))
	o.log(a, &handlerv1.Log{Handle: 1})
	require.Zero(t, drained(t, o)[0].GetLogs()[0].GetHandle())
}

func TestAfterABrokenSendNothingIsKept(t *testing.T) {
	o, a := newOutbox(), attemptNo(1)
	o.outcome(attemptNo(2), succeeded(""))
	broken := errors.New("broken")
	require.ErrorIs(t, o.deliver(func(*handlerv1.WorkResponse) error { return broken }), broken)
	require.ErrorIs(t, o.progress(a, []byte("1")), errEnded)
	o.log(a, &handlerv1.Log{})
	o.outcome(a, succeeded(""))
	require.Empty(t, o.pending)
	require.Empty(t, o.logs)
}
