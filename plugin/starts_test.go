package plugin

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/plugin/internal/protocol"
)

// fullStart has every field that is read without the generated code.
func fullStart(handle uint64) *handlerv1.Start {
	return &handlerv1.Start{
		Handle: handle, JobId: "01234567-89ab-cdef-0123-456789abcdef", JobType: "MAIL", Tenant: "tenänt", Payload: []byte(`{"x":1}`),
		Attempt: 2, MaxAttempts: 1 << 31, Fence: -7, TimeoutMs: 60_000, LeaseMs: 1 << 60, Checkpoint: []byte(`"c"`),
		Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", Tracestate: "vendor=blue",
		CreatedAt: "2026-02-20T01:02:03.456Z", Baggage: strings.Repeat("b=1,", 100),
	}
}

func encodedRequest(t testing.TB, starts ...*handlerv1.Start) []byte {
	t.Helper()
	raw, err := proto.Marshal(&handlerv1.WorkRequest{Starts: starts})
	require.NoError(t, err)
	return raw
}

func TestStartsAreReadAsByTheGeneratedCode(t *testing.T) {
	other := fullStart(2)
	other.JobType, other.Tenant = "OTHER", "default"
	for name, starts := range map[string][]*handlerv1.Start{
		"nothing":      nil,
		"one":          {fullStart(1)},
		"an empty one": {{}},
		"several":      {fullStart(1), other, {Handle: 3}, fullStart(1 << 63)},
	} {
		got, ok := readStarts(encodedRequest(t, starts...))
		require.True(t, ok, name)
		require.True(t, proto.Equal(&handlerv1.WorkRequest{Starts: starts}, &handlerv1.WorkRequest{Starts: got}), name)
	}
}

// A field that the protocol gains is either read, or leaves the request to the generated code.
func TestNoFieldOfAStartIsLost(t *testing.T) {
	full := fullStart(1).ProtoReflect()
	fields := full.Descriptor().Fields()
	for i := range fields.Len() {
		if field := fields.Get(i); !full.Has(field) {
			require.Equal(t, "predecessors", string(field.Name()))
		}
	}
	start := fullStart(1)
	start.Predecessors = []*handlerv1.Predecessor{{Name: "p"}}
	_, ok := readStarts(encodedRequest(t, start))
	require.False(t, ok)
}

func TestAStartOutlivesTheMessageItCameIn(t *testing.T) {
	raw := encodedRequest(t, fullStart(1))
	got, _ := readStarts(raw)
	clear(raw)
	require.True(t, proto.Equal(fullStart(1), got[0]))
}

func TestOtherRequestsAreLeftToTheGeneratedCode(t *testing.T) {
	one := encodedRequest(t, fullStart(1))
	within := func(start []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, protocol.RequestStarts, protowire.BytesType), start)
	}
	text := func(number protowire.Number, value string) []byte {
		return protowire.AppendString(protowire.AppendTag(nil, number, protowire.BytesType), value)
	}
	drain, err := proto.Marshal(&handlerv1.WorkRequest{Starts: []*handlerv1.Start{fullStart(1)}, Drain: true})
	require.NoError(t, err)
	for name, raw := range map[string][]byte{
		"a drain":               drain,
		"an unknown field":      within(text(beyondFields+9, "x")),
		"a number that is text": within(text(protocol.StartHandle, "x")),
		"a text that is none":   within(protowire.AppendVarint(protowire.AppendTag(nil, protocol.StartTenant, protowire.VarintType), 1)),
		"halves of a character": within(append(text(protocol.StartJobID, "\xc3"), text(protocol.StartCreatedAt, "\xa4")...)),
		"not UTF-8":             within(text(protocol.StartJobType, "\xff")),
		"cut off":               one[:len(one)-1],
		"cut off within":        within([]byte{8}),
	} {
		_, ok := readStarts(raw)
		require.False(t, ok, name)
	}
}

func TestTheCodecReadsEveryRequest(t *testing.T) {
	for _, sent := range []*handlerv1.WorkRequest{
		{},
		{Starts: []*handlerv1.Start{fullStart(1), fullStart(2)}},
		{Starts: []*handlerv1.Start{fullStart(1)}, Drain: true},
		{Cancels: []*handlerv1.Cancel{{Handle: 1}}},
	} {
		raw, err := proto.Marshal(sent)
		require.NoError(t, err)
		half := len(raw) / 2
		got := new(handlerv1.WorkRequest)
		require.NoError(t, newCodec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(raw[:half]), mem.SliceBuffer(raw[half:])}, got))
		require.True(t, proto.Equal(sent, got), "%v instead of %v", got, sent)
	}
	broken := mem.BufferSlice{mem.SliceBuffer([]byte{10, 2, 18, 1})}
	require.Error(t, newCodec().Unmarshal(broken, new(handlerv1.WorkRequest)))
}

// Whatever is read here must be what the generated code reads.
func FuzzStartsAreReadAsByTheGeneratedCode(f *testing.F) {
	f.Add([]byte{})
	f.Add(encodedRequest(f, fullStart(1), &handlerv1.Start{Handle: 2}))
	f.Add([]byte{10, 4, 8, 1, 8, 2})                                          // a handle twice
	f.Add([]byte{10, 6, 18, 1, 'a', 18, 1, 'b'})                              // an id twice
	f.Add([]byte{10, 11, 48, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1}) // an attempt of more than 32 bits
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, ok := readStarts(raw)
		if !ok {
			return
		}
		want := new(handlerv1.WorkRequest)
		require.NoError(t, proto.Unmarshal(raw, want))
		require.True(t, proto.Equal(want, &handlerv1.WorkRequest{Starts: got}), "%v instead of %v", got, want)
	})
}
