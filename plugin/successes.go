package plugin

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/plugin/internal/protocol"
)

// writeSuccesses encodes a response that has nothing but successes without follow-ups: nearly all
// responses are like that. It returns nil for any other response.
func writeSuccesses(response *handlerv1.WorkResponse) []byte {
	size := 0
	for _, outcome := range response.GetOutcomes() {
		succeeded := outcome.GetSucceeded()
		if succeeded == nil || len(succeeded.GetFollowUps()) > 0 {
			return nil
		}
		size += field(outcomeBytes(outcome.GetHandle(), succeeded.GetResult()))
	}
	if size == 0 || len(response.GetLogs())+len(response.GetProgress())+len(response.GetCheckpoints()) > 0 {
		return nil
	}
	out := make([]byte, 0, size)
	for _, outcome := range response.GetOutcomes() {
		handle, result := outcome.GetHandle(), outcome.GetSucceeded().GetResult()
		out = appendLength(out, protocol.ResponseOutcomes, outcomeBytes(handle, result))
		out = protowire.AppendTag(out, protocol.OutcomeHandle, protowire.VarintType)
		out = protowire.AppendVarint(out, handle)
		out = appendLength(out, protocol.OutcomeSucceeded, successBytes(result))
		out = protocol.AppendField(out, protocol.SucceededResult, result)
	}
	return out
}

func outcomeBytes(handle uint64, result []byte) int {
	return protowire.SizeTag(protocol.OutcomeHandle) + protowire.SizeVarint(handle) + field(successBytes(result))
}

func successBytes(result []byte) int {
	return protocol.FieldBytes(protocol.SucceededResult, len(result))
}

// field is the size of a message of that length as a field, which may be empty. The tags of all fields here
// take one byte.
func field(length int) int {
	return protowire.SizeTag(protocol.ResponseOutcomes) + protowire.SizeBytes(length)
}

// appendLength appends what comes before a message of that length.
func appendLength(out []byte, field protowire.Number, length int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(out, field, protowire.BytesType), uint64(length))
}
