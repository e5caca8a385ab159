package plugin

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/plugin/internal/protocol"
	"github.com/holdfast-jobs/holdfast/plugin/internal/schema"
)

// maxValue bounds a result, a progress and a checkpoint, in bytes of JSON: a
// message has room for it and for what surrounds it.
const maxValue = protocol.MaxMessageBytes - 1<<20

// Unmarshal decodes JSON as payloads are decoded: like json.Unmarshal, but the case
// of a member's name counts, and of several members with the same name only the
// last one is decoded. The JSON Schema of a job type reads payloads in the same way.
// json.Unmarshal does not: it takes "TO" for a field named "to", which no schema has
// checked.
//
// Use it for what a handler decodes itself, such as a json.RawMessage, and in
// UnmarshalJSON methods, whose text has no repeated members.
func Unmarshal(text []byte, into any) error { return schema.Unmarshal(text, into) }

// decodePayload decodes the payload. Some clients send JSON within a JSON string:
// its content is decoded if args is no string.
func decodePayload[A any](payload []byte, args *A) error {
	err := schema.Unmarshal(payload, args)
	if err == nil {
		return nil
	}
	var text string
	if json.Unmarshal(payload, &text) != nil {
		return err
	}
	var inner A
	if schema.Unmarshal([]byte(text), &inner) != nil {
		return err
	}
	*args = inner
	return nil
}

// encode makes JSON of a value, unless it has more bytes than most.
func encode(v any, most int) ([]byte, error) {
	encoded, err := json.Marshal(v)
	switch {
	case err != nil:
		return nil, err
	case !utf8.Valid(encoded):
		// Only a value that encodes itself, such as a json.RawMessage, can be.
		return nil, errors.New("the JSON is not valid UTF-8")
	case len(encoded) > most:
		return nil, tooLargeError{bytes: len(encoded), most: most}
	}
	return encoded, nil
}

// tooLargeError is for a value above its limit.
type tooLargeError struct{ bytes, most int }

func (e tooLargeError) Error() string {
	return fmt.Sprintf("%d bytes of JSON are more than %d", e.bytes, e.most)
}

func isTooLarge(err error) bool { return errors.As(err, new(tooLargeError)) }

// valueLimits are the largest values that the orchestrator accepts, in bytes of
// JSON, and how many follow-ups; 0 for none.
type valueLimits struct{ progress, checkpoint, result, followUps, followUpBytes int }

// limitsOf reads the limits that the orchestrator has sent. Without one, what fits
// into a message is accepted.
func limitsOf(sent *handlerv1.DescribeRequest) valueLimits {
	read := func(most uint64) int {
		if most == 0 || most > maxValue {
			return maxValue
		}
		return int(most)
	}
	return valueLimits{
		progress: read(sent.GetMaxProgressBytes()), checkpoint: read(sent.GetMaxCheckpointBytes()),
		result:    read(sent.GetMaxResultBytes()),
		followUps: int(sent.GetMaxFollowUps()), followUpBytes: read(sent.GetMaxFollowUpBytes()),
	}
}
