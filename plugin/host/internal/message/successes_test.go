package message

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/plugin/internal/protocol"
)

func succeeded(handle uint64, result string) *handlerv1.Outcome {
	var raw []byte
	if result != "" {
		raw = []byte(result)
	}
	return new(protocol.Success).Outcome(handle, raw)
}

func encoded(t testing.TB, m proto.Message) []byte {
	t.Helper()
	raw, err := proto.Marshal(m)
	require.NoError(t, err)
	return raw
}

func TestMessagesOfSuccessesAreReadInOneGo(t *testing.T) {
	for name, message := range map[string]*handlerv1.WorkResponse{
		"nothing":      {},
		"one":          {Outcomes: []*handlerv1.Outcome{succeeded(1, "")}},
		"with results": {Outcomes: []*handlerv1.Outcome{succeeded(1<<40, `{"a":1}`), succeeded(2, ""), succeeded(3, `null`)}},
	} {
		got := readSuccesses(encoded(t, message))
		require.NotNil(t, got, name)
		require.True(t, proto.Equal(message, got), name)
	}
}

func TestAResultOutlivesTheMessageItCameIn(t *testing.T) {
	raw := encoded(t, &handlerv1.WorkResponse{Outcomes: []*handlerv1.Outcome{succeeded(1, `"kept"`)}})
	got := readSuccesses(raw)
	clear(raw)
	require.Equal(t, `"kept"`, string(got.GetOutcomes()[0].GetSucceeded().GetResult()))
}

func TestOtherMessagesAreLeftToTheGeneratedCode(t *testing.T) {
	after := uint64(1)
	one := encoded(t, &handlerv1.WorkResponse{Outcomes: []*handlerv1.Outcome{succeeded(1, `"x"`)}})
	for name, raw := range map[string][]byte{
		"a failure": encoded(t, &handlerv1.WorkResponse{Outcomes: []*handlerv1.Outcome{
			succeeded(1, ""), {Handle: 2, Result: &handlerv1.Outcome_Failed{Failed: &handlerv1.Failed{RetryAfterMs: &after}}},
		}}),
		"follow-ups": encoded(t, &handlerv1.WorkResponse{Outcomes: []*handlerv1.Outcome{
			{Handle: 1, Result: &handlerv1.Outcome_Succeeded{Succeeded: &handlerv1.Succeeded{FollowUps: [][]byte{{'{', '}'}}}}},
		}}),
		"progress":         encoded(t, &handlerv1.WorkResponse{Progress: []*handlerv1.Progress{{Handle: 1}}}),
		"no handle":        encoded(t, &handlerv1.WorkResponse{Outcomes: []*handlerv1.Outcome{succeeded(0, "")}}),
		"an unknown field": protowire.AppendVarint(protowire.AppendTag(one, 77, protowire.VarintType), 1),
		"cut off":          one[:len(one)-1],
	} {
		require.Nil(t, readSuccesses(raw), name)
	}
}

// Whatever is read in one go must be what the generated code reads.
func FuzzSuccessesAreReadAsByTheGeneratedCode(f *testing.F) {
	f.Add([]byte{})
	f.Add(encoded(f, &handlerv1.WorkResponse{Outcomes: []*handlerv1.Outcome{succeeded(300, `{"a":1}`), succeeded(2, "")}}))
	f.Add([]byte{10, 6, 8, 1, 8, 2, 18, 0})         // a handle twice
	f.Add([]byte{10, 8, 8, 1, 18, 0, 18, 2, 10, 0}) // a success twice
	f.Fuzz(func(t *testing.T, raw []byte) {
		got := readSuccesses(raw)
		if got == nil {
			return
		}
		want := new(handlerv1.WorkResponse)
		require.NoError(t, proto.Unmarshal(raw, want))
		require.True(t, proto.Equal(want, got), "%v instead of %v", got, want)
	})
}
