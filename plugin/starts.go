package plugin

import (
	"bytes"
	"unicode/utf8"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec that startsCodec extends
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/plugin/internal/protocol"
)

// startsCodec is gRPC's own codec, except for requests of readStarts.
type startsCodec struct{ encoding.CodecV2 }

func newStartsCodec() startsCodec { return startsCodec{encoding.GetCodecV2("proto")} }

// Unmarshal implements encoding.CodecV2.
func (c startsCodec) Unmarshal(data mem.BufferSlice, v any) error {
	request, ok := v.(*handlerv1.WorkRequest)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	buffer := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buffer.Free()
	if starts, ok := readStarts(buffer.ReadOnlyData()); ok {
		request.Starts = starts
		return nil
	}
	return c.CodecV2.Unmarshal(mem.BufferSlice{buffer}, request)
}

// startsField is WorkRequest.starts.
const startsField = 1

// These are the fields of a start that are read here, by their numbers in handler.proto.
const (
	handleField = iota + 1
	jobIDField
	jobTypeField
	tenantField
	payloadField
	attemptField
	maxAttemptsField
	fenceField
	timeoutField
	leaseField
	checkpointField
	traceParentField
	traceStateField
	createdAtField
	baggageField
	beyondFields
)

// readStarts decodes a request that has starts only, without predecessors: nearly all requests
// are like that, and this takes half of the allocations of the generated code. It returns false
// for any other request.
func readStarts(data []byte) ([]*handlerv1.Start, bool) {
	count := 0
	for rest := data; len(rest) > 0; count++ {
		_, n := protocol.CutField(rest, startsField)
		if n < 0 {
			return nil, false
		}
		rest = rest[n:]
	}
	starts := make([]*handlerv1.Start, count)
	var last *handlerv1.Start
	for i := range starts {
		content, n := protocol.CutField(data, startsField)
		if last = readStart(content, last); last == nil {
			return nil, false
		}
		starts[i], data = last, data[n:]
	}
	return starts, true
}

// readStart decodes a start that has no other fields than those above; nil if it has. last is
// the one before it, if any, which has mostly the same job type and tenant.
func readStart(data []byte, last *handlerv1.Start) *handlerv1.Start {
	var numbers [beyondFields]uint64
	var values [beyondFields][]byte
	for len(data) > 0 {
		field, kind, n := protowire.ConsumeTag(data)
		if n < 0 || field >= beyondFields {
			return nil
		}
		m := -1
		switch field {
		case handleField, attemptField, maxAttemptsField, fenceField, timeoutField, leaseField:
			if kind == protowire.VarintType {
				numbers[field], m = protowire.ConsumeVarint(data[n:])
			}
		default:
			if kind == protowire.BytesType {
				values[field], m = protowire.ConsumeBytes(data[n:])
			}
		}
		if m < 0 {
			return nil
		}
		data = data[n+m:]
	}
	var buffer [80]byte
	idAndTime := string(append(append(buffer[:0], values[jobIDField]...), values[createdAtField]...))
	idEnds := len(values[jobIDField])
	start := &handlerv1.Start{
		Handle: numbers[handleField], Attempt: uint32(numbers[attemptField]), MaxAttempts: uint32(numbers[maxAttemptsField]),
		Fence: int64(numbers[fenceField]), TimeoutMs: numbers[timeoutField], LeaseMs: numbers[leaseField],
		JobId: idAndTime[:idEnds], CreatedAt: idAndTime[idEnds:],
		JobType: textLike(last.GetJobType(), values[jobTypeField]), Tenant: textLike(last.GetTenant(), values[tenantField]),
		Payload: bytes.Clone(values[payloadField]), Checkpoint: bytes.Clone(values[checkpointField]),
		Traceparent: string(values[traceParentField]), Tracestate: string(values[traceStateField]), Baggage: string(values[baggageField]),
	}
	for _, text := range [...]string{start.JobId, start.CreatedAt, start.JobType, start.Tenant, start.Traceparent, start.Tracestate, start.Baggage} {
		if !utf8.ValidString(text) {
			return nil // the generated code says what is wrong
		}
	}
	return start
}

// textLike returns the text as a string: the given one if they are equal.
func textLike(one string, text []byte) string {
	if string(text) == one {
		return one
	}
	return string(text)
}
