package protocol

import "google.golang.org/protobuf/encoding/protowire"

// CutField is for decoders of hot messages at both ends. It returns the content of the bytes,
// text or message at the start of the data, and where that field ends; a negative number if
// the data begin with another field, or with none.
func CutField(data []byte, field protowire.Number) (content []byte, end int) {
	number, kind, n := protowire.ConsumeTag(data)
	if n < 0 || number != field || kind != protowire.BytesType {
		return nil, -1
	}
	content, m := protowire.ConsumeBytes(data[n:])
	if m < 0 {
		return nil, -1
	}
	return content, n + m
}
