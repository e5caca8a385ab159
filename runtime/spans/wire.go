package spans

import (
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"google.golang.org/protobuf/encoding/protowire"
)

// The fields of OTLP's messages, by trace.proto and common.proto.
const (
	spanTrace, spanID, spanState, spanParent, spanName, spanKind        protowire.Number = 1, 2, 3, 4, 5, 6
	spanStart, spanEnd, spanAttributes, spanEvents, spanLinks           protowire.Number = 7, 8, 9, 11, 13
	spanStatus, spanFlags                                               protowire.Number = 15, 16
	eventTime, eventName, eventAttributes                               protowire.Number = 1, 2, 3
	linkTrace, linkSpan, linkAttributes, linkFlags                      protowire.Number = 1, 2, 4, 6
	statusMessage, statusCode                                           protowire.Number = 2, 3
	pairKey, pairValue                                                  protowire.Number = 1, 2
	valueString, valueBool, valueInt, valueDouble, valueArray, arrayAny protowire.Number = 1, 2, 3, 4, 5, 1
)

// The bytes before the key of an attribute, its value, and the text of that.
const (
	keyTag   = byte(pairKey<<3 | protowire.Number(protowire.BytesType))
	valueTag = byte(pairValue<<3 | protowire.Number(protowire.BytesType))
	textTag  = byte(valueString<<3 | protowire.Number(protowire.BytesType))
)

// appendAttribute appends an attribute to a span, an event or a link.
func appendAttribute(b []byte, field protowire.Number, about *attribute.KeyValue) []byte {
	key, v := string(about.Key), &about.Value
	if v.Type() == attribute.STRING {
		return appendText(b, field, key, valid(v.AsString()))
	}
	b, pair := open(b, field)
	b = appendString(b, pairKey, key)
	b, value := open(b, pairValue)
	switch v.Type() {
	case attribute.BOOL:
		b = appendNumber(b, valueBool, protowire.EncodeBool(v.AsBool()))
	case attribute.INT64:
		b = appendNumber(b, valueInt, uint64(v.AsInt64()))
	case attribute.FLOAT64:
		b = protowire.AppendTag(b, valueDouble, protowire.Fixed64Type)
		b = protowire.AppendFixed64(b, math.Float64bits(v.AsFloat64()))
	case attribute.STRINGSLICE:
		var array, element int
		b, array = open(b, valueArray)
		for _, text := range v.AsStringSlice() {
			b, element = open(b, arrayAny)
			b = shut(appendString(b, valueString, valid(text)), element)
		}
		b = shut(b, array)
	default: // which jobs have none of
		b = appendString(b, valueString, valid(v.String()))
	}
	return shut(shut(b, value), pair)
}

// appendText appends an attribute that is a text. Nearly always, no length in it takes more than
// one byte, and it is written at once.
func appendText(b []byte, field protowire.Number, key, text string) []byte {
	const tags = 6 // of key, value and text, each with a length
	if len(key)+len(text)+tags <= 0x7f {
		b = append(b, byte(field<<3|protowire.Number(protowire.BytesType)), byte(len(key)+len(text)+tags), keyTag, byte(len(key)))
		b = append(b, key...)
		b = append(b, valueTag, byte(len(text)+2), textTag, byte(len(text)))
		return append(b, text...)
	}
	b, pair := open(b, field)
	b = appendString(b, pairKey, key)
	b, value := open(b, pairValue)
	return shut(shut(appendString(b, valueString, text), value), pair)
}

// open begins a message or text, and shut ends it.
func open(b []byte, field protowire.Number) (opened []byte, at int) {
	b = append(protowire.AppendTag(b, field, protowire.BytesType), 0) // the length, which mostly is one byte
	return b, len(b)
}

func shut(b []byte, at int) []byte {
	length := uint64(len(b) - at)
	if more := protowire.SizeVarint(length) - 1; more > 0 {
		b = append(b, "\x00\x00\x00\x00"[:more]...)
		copy(b[at+more:], b[at:])
	}
	protowire.AppendVarint(b[:at-1], length)
	return b
}

func appendString(b []byte, field protowire.Number, text string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), text)
}

func appendBytes(b []byte, field protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), value)
}

func appendNumber(b []byte, field protowire.Number, value uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), value)
}

func appendFixed32(b []byte, field protowire.Number, value uint32) []byte {
	return protowire.AppendFixed32(protowire.AppendTag(b, field, protowire.Fixed32Type), value)
}

func appendTime(b []byte, field protowire.Number, at time.Time) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), uint64(max(0, at.UnixNano())))
}

// valid is text that a collector can read: it would refuse all spans that are sent with one that
// is not UTF-8.
func valid(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
