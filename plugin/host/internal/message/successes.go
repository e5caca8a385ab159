package message

import (
	"bytes"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/plugin/internal/protocol"
)

// readSuccesses decodes a message that has outcomes only, all of them successes without
// follow-ups: nearly all messages are like that, and this takes a few allocations for all
// outcomes instead of three for each. It returns nil for any other message.
func readSuccesses(data []byte) *handlerv1.WorkResponse {
	count := 0
	for rest := data; len(rest) > 0; count++ {
		outcome, n := protocol.CutField(rest, protocol.ResponseOutcomes)
		if _, _, ok := plainSuccess(outcome); n < 0 || !ok {
			return nil
		}
		rest = rest[n:]
	}
	successes := make([]protocol.Success, count)
	message := &handlerv1.WorkResponse{Outcomes: make([]*handlerv1.Outcome, count)}
	for i := range message.Outcomes {
		outcome, n := protocol.CutField(data, protocol.ResponseOutcomes)
		handle, result, _ := plainSuccess(outcome)
		message.Outcomes[i] = successes[i].Outcome(handle, bytes.Clone(result))
		data = data[n:]
	}
	return message
}

// plainSuccess decodes an outcome that has a handle, a success and nothing else. The result is a
// part of the data; nil if there is none.
func plainSuccess(data []byte) (handle uint64, result []byte, ok bool) {
	number, kind, n := protowire.ConsumeTag(data)
	if n < 0 || number != protocol.OutcomeHandle || kind != protowire.VarintType {
		return 0, nil, false
	}
	handle, m := protowire.ConsumeVarint(data[n:])
	if m < 0 {
		return 0, nil, false
	}
	data = data[n+m:]
	succeeded, n := protocol.CutField(data, protocol.OutcomeSucceeded)
	if n != len(data) {
		return 0, nil, false
	}
	if len(succeeded) == 0 {
		return handle, nil, true
	}
	result, n = protocol.CutField(succeeded, protocol.SucceededResult)
	return handle, result, n == len(succeeded)
}
