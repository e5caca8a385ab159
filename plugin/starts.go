package plugin

import (
	"bytes"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/plugin/internal/protocol"
)

// beyondFields is the first field of a start that is not read here.
const beyondFields = protocol.StartPredecessors

// readStarts decodes a request that has starts only, without predecessors: nearly all requests
// are like that, and this takes half of the allocations of the generated code. It returns false
// for any other request.
func readStarts(data []byte) ([]*handlerv1.Start, bool) {
	count := 0
	for rest := data; len(rest) > 0; count++ {
		_, n := protocol.CutField(rest, protocol.RequestStarts)
		if n < 0 {
			return nil, false
		}
		rest = rest[n:]
	}
	starts := make([]*handlerv1.Start, count)
	var last *handlerv1.Start
	for i := range starts {
		content, n := protocol.CutField(data, protocol.RequestStarts)
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
		case protocol.StartHandle, protocol.StartAttempt, protocol.StartMaxAttempts, protocol.StartFence, protocol.StartTimeout, protocol.StartLease:
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
	idAndTime := string(append(append(buffer[:0], values[protocol.StartJobID]...), values[protocol.StartCreatedAt]...))
	idEnds := len(values[protocol.StartJobID])
	start := &handlerv1.Start{
		Handle: numbers[protocol.StartHandle], Attempt: uint32(numbers[protocol.StartAttempt]), MaxAttempts: uint32(numbers[protocol.StartMaxAttempts]),
		Fence: int64(numbers[protocol.StartFence]), TimeoutMs: numbers[protocol.StartTimeout], LeaseMs: numbers[protocol.StartLease],
		JobId: idAndTime[:idEnds], CreatedAt: idAndTime[idEnds:],
		JobType: textLike(last.GetJobType(), values[protocol.StartJobType]), Tenant: textLike(last.GetTenant(), values[protocol.StartTenant]),
		Payload: bytes.Clone(values[protocol.StartPayload]), Checkpoint: bytes.Clone(values[protocol.StartCheckpoint]),
		Traceparent: string(values[protocol.StartTraceParent]), Tracestate: string(values[protocol.StartTraceState]), Baggage: string(values[protocol.StartBaggage]),
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
