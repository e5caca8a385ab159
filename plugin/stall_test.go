package plugin

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/plugin/internal/protocol"
)

func TestAHandlerNeverWaitsForAnOrchestratorThatDoesNotRead(t *testing.T) {
	const rounds = 3 * maxLogs
	large := strings.Repeat("x", 1<<20)
	done := make(chan error, 1)
	o := serving(t, HandleResult("FLOOD", func(ctx context.Context, j Job[any]) (string, error) {
		for i := range rounds {
			Logger(ctx).Info("flood", "text", large[:1000])
			if i%100 != 0 {
				continue
			}
			if err := j.Progress(large); err != nil {
				return "", err
			}
			if err := j.Checkpoint(large); err != nil {
				return "", err
			}
		}
		done <- j.Checkpoint("last")
		return large, nil
	}))
	stream, err := o.client.Work(t.Context()) // which nobody reads so far
	require.NoError(t, err)
	s := o.newStart("FLOOD", `null`)
	require.NoError(t, stream.Send(&handlerv1.WorkRequest{Starts: []*handlerv1.Start{s}}))
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(patience):
		require.FailNow(t, "the handler waits")
	}

	var logs, dropped, bytes int
	var checkpoint []byte
	for ended := false; !ended; {
		m, err := stream.Recv()
		require.NoError(t, err)
		require.LessOrEqual(t, proto.Size(m), protocol.MaxMessageBytes)
		bytes += proto.Size(m)
		for _, record := range m.GetLogs() {
			var n int
			if _, err := fmt.Sscanf(record.GetMessage(), "%d log records were dropped", &n); err == nil {
				dropped += n
				continue
			}
			logs++
		}
		for _, c := range m.GetCheckpoints() {
			checkpoint = c.GetCheckpoint()
		}
		ended = len(m.GetOutcomes()) > 0
	}
	require.Equal(t, rounds, logs+dropped, "each record has arrived or is counted")
	require.Positive(t, dropped)
	require.Equal(t, `"last"`, string(checkpoint), "the last one counts")
	require.Less(t, bytes, 20<<20, "what nobody reads is not kept")
}

// Many large results at once, as from handlers that end together.
func TestLargeResultsDoNotMakeAMessageTooLarge(t *testing.T) {
	const jobs = 30
	goOn := make(chan struct{})
	large := strings.Repeat("x", 1<<20)
	o := serving(t, HandleResult("LARGE", func(context.Context, Job[any]) (string, error) {
		<-goOn
		return large, nil
	}))
	var request handlerv1.WorkRequest
	for range jobs {
		request.Starts = append(request.Starts, o.newStart("LARGE", `null`))
	}
	o.send(&request)
	close(goOn)
	for len(o.outcomes) < jobs {
		require.LessOrEqual(t, proto.Size(o.receive()), 2<<20, "a cancel would wait behind it")
	}
	for _, ended := range o.outcomes {
		require.Len(t, ended.GetSucceeded().GetResult(), len(large)+2)
	}
}
