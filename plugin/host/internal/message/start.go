package message

import (
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/plugin/internal/protocol"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	// startOverhead is more than the bytes on the wire of those fields of a start that
	// StartBytes does not count.
	startOverhead = 1 << 10
	// predecessorOverhead is the same for a predecessor.
	predecessorOverhead = 128
)

// StartBytes is an upper bound for the size of the start on the wire.
func StartBytes(a *job.Assignment) int {
	bytes := startOverhead + len(a.Payload) + len(a.Checkpoint) +
		len(a.Type) + len(a.Tenant) + len(a.Trace.Parent) + len(a.Trace.State) + len(a.Trace.Baggage)
	for _, p := range a.Predecessors {
		bytes += predecessorOverhead + len(p.Name) + len(p.Result)
	}
	return bytes
}

// starts are starts that wait to be sent, in wire format. No message of protobuf is made of them,
// because every job needs one. The zero value is empty.
type starts struct {
	all []queuedStart
	// texts has their fields, but for what queuedStart has.
	texts []byte
	// created is how lastCreated is written. Jobs that were submitted together have the same time.
	created     []byte
	lastCreated time.Time
}

type queuedStart struct {
	end                 int // of its texts
	handle              uint64
	payload, checkpoint []byte
	// until is how long the lease is known to last.
	until time.Time
}

// add adds a start. It replaces invalid UTF-8, which would end the stream and all attempts on it.
func (s *starts) add(handle uint64, a *job.Assignment, until time.Time) {
	if len(s.created) == 0 || !a.CreatedAt.Equal(s.lastCreated) {
		s.created, s.lastCreated = a.CreatedAt.UTC().AppendFormat(s.created[:0], time.RFC3339Nano), a.CreatedAt
	}
	var id [36]byte
	jobID, _ := a.JobID.AppendText(id[:0]) // never fails
	out := s.texts
	out = protocol.AppendField(out, protocol.StartJobID, jobID)
	out = protocol.AppendField(out, protocol.StartJobType, strings.ToValidUTF8(a.Type, "?"))
	out = protocol.AppendField(out, protocol.StartTenant, strings.ToValidUTF8(a.Tenant, "?"))
	out = appendNumber(out, protocol.StartAttempt, uint64(toCount(a.Attempt)))
	out = appendNumber(out, protocol.StartMaxAttempts, uint64(toCount(a.MaxAttempts)))
	out = appendNumber(out, protocol.StartFence, uint64(a.Fence)) //nolint:gosec // which is how protobuf writes an int64
	out = appendNumber(out, protocol.StartTimeout, max(toMilliseconds(a.Timeout), 1))
	out = protocol.AppendField(out, protocol.StartTraceParent, strings.ToValidUTF8(a.Trace.Parent, ""))
	out = protocol.AppendField(out, protocol.StartTraceState, strings.ToValidUTF8(a.Trace.State, ""))
	out = protocol.AppendField(out, protocol.StartCreatedAt, s.created)
	out = protocol.AppendField(out, protocol.StartBaggage, strings.ToValidUTF8(a.Trace.Baggage, ""))
	out = appendPredecessors(out, a.Predecessors)
	s.texts = out
	s.all = append(s.all, queuedStart{end: len(out), handle: handle, payload: a.Payload, checkpoint: a.Checkpoint, until: until})
}

// messages yields them as requests of at most about messageBytes each; the last one is returned. Leases
// are written as the time that is left from now. It returns false when the caller wants no more.
func (s *starts) messages(now time.Time, yield func(Request) bool) (last Request, more bool) {
	begin := 0
	for i, q := range s.all {
		texts := s.texts[begin:q.end]
		begin = q.end
		lease := max(toMilliseconds(q.until.Sub(now)), 1)
		size := len(texts) + protocol.FieldBytes(protocol.StartPayload, len(q.payload)) + protocol.FieldBytes(protocol.StartCheckpoint, len(q.checkpoint)) +
			numberBytes(protocol.StartHandle, q.handle) + numberBytes(protocol.StartLease, lease)
		whole := protocol.FieldBytes(protocol.RequestStarts, size)
		if len(last) > 0 && len(last)+whole > messageBytes {
			if !yield(last) {
				return nil, false
			}
			last = nil
		}
		if last == nil {
			left := len(s.all) - i // most are about as large as this one
			last = make(Request, 0, max(whole, min(left*(whole+whole/8), messageBytes)))
		}
		last = protowire.AppendTag(last, protocol.RequestStarts, protowire.BytesType)
		last = protowire.AppendVarint(last, uint64(size))
		last = appendNumber(last, protocol.StartHandle, q.handle)
		last = append(last, texts...)
		last = protocol.AppendField(last, protocol.StartPayload, q.payload)
		last = protocol.AppendField(last, protocol.StartCheckpoint, q.checkpoint)
		last = appendNumber(last, protocol.StartLease, lease)
	}
	return last, true
}

// appendNumber appends a number, unless it is 0.
func appendNumber(out []byte, field protowire.Number, value uint64) []byte {
	if value == 0 {
		return out
	}
	return protowire.AppendVarint(protowire.AppendTag(out, field, protowire.VarintType), value)
}

// numberBytes is how many bytes appendNumber appends.
func numberBytes(field protowire.Number, value uint64) int {
	if value == 0 {
		return 0
	}
	return protowire.SizeTag(field) + protowire.SizeVarint(value)
}

// appendPredecessors leaves what few jobs have to the generated code.
func appendPredecessors(out []byte, before []job.Predecessor) []byte {
	if len(before) == 0 {
		return out
	}
	written := &handlerv1.Start{Predecessors: make([]*handlerv1.Predecessor, len(before))}
	for i, p := range before {
		written.Predecessors[i] = &handlerv1.Predecessor{
			Name: strings.ToValidUTF8(p.Name, "?"), JobId: p.ID.String(), Succeeded: p.Succeeded, Result: p.Result, Omitted: p.Omitted,
		}
	}
	return appendMessage(out, written)
}

// appendMessage appends the fields of a message whose texts are UTF-8: nothing else can be wrong with it.
func appendMessage(out []byte, m proto.Message) []byte {
	out, err := proto.MarshalOptions{}.MarshalAppend(out, m)
	if err != nil {
		panic("message: " + err.Error())
	}
	return out
}
