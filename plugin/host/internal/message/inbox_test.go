package message

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
)

// received is the message as it arrives, in frames of that many bytes.
func received(t testing.TB, raw []byte, frame int) *Inbox {
	t.Helper()
	var data mem.BufferSlice
	for len(raw) > 0 {
		n := min(frame, len(raw))
		data = append(data, mem.SliceBuffer(raw[:n]))
		raw = raw[n:]
	}
	in := new(Inbox)
	require.NoError(t, NewCodec().Unmarshal(data, in))
	return in
}

// whole puts the parts together.
func whole(t testing.TB, in *Inbox, longest int) (*handlerv1.WorkResponse, int) {
	t.Helper()
	all, parts := new(handlerv1.WorkResponse), 0
	for part, err := range in.Parts(longest) {
		require.NoError(t, err)
		proto.Merge(all, part)
		parts++
	}
	return all, parts
}

func TestALargeMessageIsDecodedPartByPartWithItsOutcomesLast(t *testing.T) {
	value := []byte(`"` + strings.Repeat("v", partBytes/4) + `"`)
	sent := &handlerv1.WorkResponse{
		Logs: []*handlerv1.Log{{Handle: 1, Level: handlerv1.Log_LEVEL_WARN, Message: "é", Attributes: value, Time: "now", Dropped: 3}},
	}
	for handle := range uint64(10) {
		after := handle
		sent.Progress = append(sent.Progress, &handlerv1.Progress{Handle: handle, Progress: value})
		sent.Checkpoints = append(sent.Checkpoints, &handlerv1.Checkpoint{Handle: handle, Checkpoint: value})
		sent.Outcomes = append(sent.Outcomes,
			&handlerv1.Outcome{Handle: handle, Result: &handlerv1.Outcome_Succeeded{Succeeded: &handlerv1.Succeeded{Result: value}}},
			&handlerv1.Outcome{Handle: handle, Result: &handlerv1.Outcome_Failed{Failed: &handlerv1.Failed{Permanent: true, Code: "c", RetryAfterMs: &after}}},
			&handlerv1.Outcome{Handle: handle, Result: &handlerv1.Outcome_Canceled{Canceled: &handlerv1.Canceled{}}})
	}
	raw, err := proto.Marshal(sent)
	require.NoError(t, err)
	in := received(t, raw, 16<<10)
	require.Equal(t, len(raw), in.Bytes())
	got, parts := whole(t, in, len(value))
	require.True(t, proto.Equal(sent, got))
	require.Greater(t, parts, 6)

	ended := false
	for part, err := range received(t, raw, 999).Parts(len(value)) {
		require.NoError(t, err)
		require.LessOrEqual(t, proto.Size(part), partBytes+2*len(value))
		require.False(t, ended && len(part.GetProgress())+len(part.GetCheckpoints()) > 0, "something follows an outcome")
		ended = ended || len(part.GetOutcomes()) > 0
	}
}

func TestLongValuesAreCutBeforeDecoding(t *testing.T) {
	const longest = 1000
	long := strings.Repeat("ä", 2*partBytes)
	raw, err := proto.Marshal(&handlerv1.WorkResponse{
		Logs:     []*handlerv1.Log{{Handle: 1, Message: long}, {Handle: 2, Message: "short"}},
		Progress: []*handlerv1.Progress{{Handle: 3, Progress: []byte(long)}},
		Outcomes: []*handlerv1.Outcome{{Handle: 4, Result: &handlerv1.Outcome_Failed{Failed: &handlerv1.Failed{Message: "m", Stack: "x" + long}}}},
	})
	require.NoError(t, err)
	got, _ := whole(t, received(t, raw, 16<<10), longest)
	require.Equal(t, long[:longest], got.GetLogs()[0].GetMessage(), "at a rune")
	require.Equal(t, "short", got.GetLogs()[1].GetMessage())
	require.Len(t, got.GetProgress()[0].GetProgress(), longest+1, "too long can be seen")
	require.Equal(t, "m", got.GetOutcomes()[0].GetFailed().GetMessage())
	require.Len(t, got.GetOutcomes()[0].GetFailed().GetStack(), longest+1)
}

func TestUnknownFieldsAreSkipped(t *testing.T) {
	raw, err := proto.Marshal(&handlerv1.WorkResponse{Progress: []*handlerv1.Progress{{Handle: 3}}})
	require.NoError(t, err)
	raw = protowire.AppendBytes(protowire.AppendTag(raw, 99, protowire.BytesType), make([]byte, partBytes))
	raw = protowire.AppendVarint(protowire.AppendTag(raw, 98, protowire.VarintType), 7)
	raw = protowire.AppendFixed32(protowire.AppendTag(raw, 97, protowire.Fixed32Type), 7)
	raw = protowire.AppendFixed64(protowire.AppendTag(raw, 96, protowire.Fixed64Type), 7)
	got, _ := whole(t, received(t, raw, 16<<10), 10)
	require.Len(t, got.GetProgress(), 1)
}

// Reading any message must end. A valid message must be read as the library reads it.
func FuzzInbox(f *testing.F) {
	good, err := proto.Marshal(&handlerv1.WorkResponse{
		Logs:     []*handlerv1.Log{{Handle: 1, Message: "é"}},
		Outcomes: []*handlerv1.Outcome{{Handle: 4, Result: &handlerv1.Outcome_Failed{Failed: &handlerv1.Failed{Message: "m"}}}},
	})
	require.NoError(f, err)
	f.Add(good)
	f.Add([]byte("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Add([]byte("\x0a\x04\x12\xff\x01\x00"))
	f.Add([]byte("\x0b\x0c"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) == 0 {
			return
		}
		data := mem.BufferSlice{mem.SliceBuffer(raw)}
		in := &Inbox{parts: data}
		got, failed := new(handlerv1.WorkResponse), false
		for part, err := range in.Parts(len(raw)) {
			if failed = err != nil; failed {
				break
			}
			proto.Merge(got, part)
		}
		want := new(handlerv1.WorkResponse)
		err := proto.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(raw, want)
		if err == nil && !failed {
			require.True(t, proto.Equal(want, got), "%v\n%v", want, got)
		}
	})
}
