package plugin

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/plugin/internal/protocol"
)

func success(handle uint64, result string) *handlerv1.Outcome {
	return new(protocol.Success).Outcome(handle, []byte(result))
}

func TestSuccessesAreWrittenAsByTheGeneratedCode(t *testing.T) {
	for name, outcomes := range map[string][]*handlerv1.Outcome{
		"one":          {success(1, "")},
		"with results": {success(1<<63, `{"a":1}`), success(200, ""), success(3, `"`+strings.Repeat("x", 1<<16)+`"`)},
	} {
		response := &handlerv1.WorkResponse{Outcomes: outcomes}
		want, err := proto.MarshalOptions{Deterministic: true}.Marshal(response)
		require.NoError(t, err)
		got := writeSuccesses(response)
		require.Equal(t, want, got, name)
		require.Equal(t, len(got), cap(got), "the size is known beforehand: %s", name)
		data, err := newCodec().Marshal(response)
		require.NoError(t, err)
		require.Equal(t, want, data.Materialize(), name)
	}
}

func TestOtherResponsesAreLeftToTheGeneratedCode(t *testing.T) {
	one := success(1, `{}`)
	for name, response := range map[string]*handlerv1.WorkResponse{
		"nothing":      {},
		"a log":        {Outcomes: []*handlerv1.Outcome{one}, Logs: []*handlerv1.Log{{Message: "m"}}},
		"progress":     {Outcomes: []*handlerv1.Outcome{one}, Progress: []*handlerv1.Progress{{Handle: 2}}},
		"a checkpoint": {Outcomes: []*handlerv1.Outcome{one}, Checkpoints: []*handlerv1.Checkpoint{{Handle: 2}}},
		"a failure":    {Outcomes: []*handlerv1.Outcome{one, {Handle: 2, Result: &handlerv1.Outcome_Failed{Failed: &handlerv1.Failed{}}}}},
		"follow-ups": {Outcomes: []*handlerv1.Outcome{
			{Handle: 2, Result: &handlerv1.Outcome_Succeeded{Succeeded: &handlerv1.Succeeded{FollowUps: [][]byte{{'1'}}}}},
		}},
	} {
		require.Nil(t, writeSuccesses(response), name)
		want, err := proto.Marshal(response)
		require.NoError(t, err)
		data, err := newCodec().Marshal(response)
		require.NoError(t, err)
		require.Equal(t, string(want), string(data.Materialize()), name)
	}
	fields := new(handlerv1.WorkResponse).ProtoReflect().Descriptor().Fields()
	require.Equal(t, 4, fields.Len(), "a field that the protocol gains must be looked at, too")
	require.Equal(t, 2, new(handlerv1.Succeeded).ProtoReflect().Descriptor().Fields().Len())
}
