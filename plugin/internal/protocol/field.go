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

// AppendField appends a text, or bytes, for encoders of hot messages at both ends. It appends nothing for an
// empty value, as protobuf does unless a field is a message.
func AppendField[T string | []byte](out []byte, field protowire.Number, value T) []byte {
	if len(value) == 0 {
		return out
	}
	out = protowire.AppendTag(out, field, protowire.BytesType)
	out = protowire.AppendVarint(out, uint64(len(value)))
	return append(out, value...)
}

// FieldBytes is how many bytes AppendField appends for a value of that length.
func FieldBytes(field protowire.Number, length int) int {
	if length == 0 {
		return 0
	}
	return protowire.SizeTag(field) + protowire.SizeBytes(length)
}
