package plugin

import (
	"encoding/json"
	"errors"
	"unicode/utf8"

	"github.com/holdfast-jobs/holdfast/plugin/internal/exact"
	"github.com/holdfast-jobs/holdfast/plugin/internal/wire"
)

// maxValue bounds a result, a progress and a checkpoint, in bytes of JSON, so
// that a message has room for it and for what surrounds it.
const maxValue = wire.MaxMessageBytes - 1<<20

// Unmarshal decodes JSON as payloads are decoded: like json.Unmarshal, but a
// member of an object is that of the field which is named exactly so, and of
// several members with the same name only the last one counts. The JSON Schema
// of a job type reads payloads in the same way, and json.Unmarshal does not: it
// would take "TO" for a field named "to", which no schema has checked.
//
// It is for what handlers decode themselves, such as a json.RawMessage, and for
// UnmarshalJSON methods, which get their text without repeated members.
func Unmarshal(text []byte, into any) error { return exact.Unmarshal(text, into) }

// decodePayload reads the payload into what args points at. A payload that is
// a JSON text within a JSON string, as some clients send it, is read as that
// text where args takes no string.
func decodePayload[A any](payload []byte, args *A) error {
	err := exact.Unmarshal(payload, args)
	if err == nil {
		return nil
	}
	var text string
	if json.Unmarshal(payload, &text) != nil {
		return err
	}
	var inner A
	if exact.Unmarshal([]byte(text), &inner) != nil {
		return err
	}
	*args = inner
	return nil
}

// encode makes JSON that the orchestrator will accept if it is not too large.
func encode(v any) ([]byte, error) {
	encoded, err := json.Marshal(v)
	switch {
	case err != nil:
		return nil, err
	case !utf8.Valid(encoded):
		// Only a value that encodes itself, such as a json.RawMessage, can.
		return nil, errors.New("the JSON is not valid UTF-8")
	}
	return encoded, nil
}
